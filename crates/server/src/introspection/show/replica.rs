//! SHOW REPLICA STATUS.

use nfold_catalog::Privileges;
use nfold_types::{ErrorCode, SqlError, Timestamp, Value};

use super::facts;
use crate::session::Session;
use crate::session::replication::{ChannelError, ChannelPhase, Until};
use crate::session::response::Response;
use crate::unix_time::unix_time;

/// A time as `yymmdd hh:mm:ss`, in the server's zone.
fn short_time(error: Option<&ChannelError>) -> String {
    let Some(error) = error else {
        return String::new();
    };
    let zone = nfold_types::temporal::TimeZone::system();
    let Some(at) = zone.to_local(Timestamp::from_micros(error.at_us, 0)) else {
        return String::new();
    };
    let date = at.date();
    format!(
        "{:02}{:02}{:02} {:02}:{:02}:{:02}",
        date.year() % 100,
        date.month(),
        date.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

/// `database.table,…`
fn dotted(pairs: &[(String, String)]) -> String {
    let texts = pairs
        .iter()
        .map(|(database, table)| format!("{database}.{table}"));
    texts.collect::<Vec<_>>().join(",")
}

/// `(from,to),…`
fn rewritten(pairs: &[(String, String)]) -> String {
    let texts = pairs.iter().map(|(from, to)| format!("({from},{to})"));
    texts.collect::<Vec<_>>().join(",")
}

impl Session {
    /// SHOW REPLICA STATUS: one row if the channel is configured.
    pub(crate) fn show_replica_status(
        &mut self,
        channel: Option<&String>,
    ) -> Result<Response, SqlError> {
        let names = "SUPER, REPLICATION CLIENT";
        if !self.rights.has_global(Privileges::SUPER) {
            self.rights
                .need_global(Privileges::REPLICATION_CLIENT, names)?;
        }
        if let Some(name) = channel.filter(|name| !name.is_empty()) {
            let code = ErrorCode::ER_REPLICA_CHANNEL_DOES_NOT_EXIST;
            return Err(SqlError::new(code, &[name]));
        }
        let Some(config) = self.server.replication.config() else {
            return facts::empty(facts::REPLICA_STATUS, None);
        };
        let status = self.server.replication.with_status(|status| status.clone());
        let runs = status.phase != ChannelPhase::Stopped;
        let behind = status
            .event_time
            .map_or(0, |time| unix_time().as_secs().saturating_sub(time.into()));
        let word = |on: bool| if on { "Yes" } else { "No" };
        let (state, reads) = match status.phase {
            ChannelPhase::Stopped => ("", "No"),
            ChannelPhase::Connecting => ("Connecting to source", "Connecting"),
            ChannelPhase::Running => ("Waiting for source to send event", "Yes"),
        };
        let code = |e: &Option<ChannelError>| e.as_ref().map_or(0, |e| u64::from(e.code));
        let message =
            |e: &Option<ChannelError>| e.as_ref().map_or(String::new(), |e| e.message.clone());
        let until_place = match &status.until {
            Some(Until::Position { file, position }) => (file.clone(), *position),
            _ => (String::new(), 0),
        };
        let filters = &config.filters;
        let (source, applier) = (&status.source_error, &status.applier_error);
        facts::one_row(facts::REPLICA_STATUS, |name| match name {
            "Replica_IO_State" => state.into(),
            "Source_Host" => config.host.as_str().into(),
            "Source_User" => config.user.as_str().into(),
            "Source_Port" => Value::UInt(config.port.into()),
            "Replicate_Do_DB" => match config.databases.is_empty() {
                true => filters.do_db.join(","),
                false => config.databases.join(","),
            }
            .into(),
            "Replicate_Ignore_DB" => filters.ignore_db.join(",").into(),
            "Replicate_Do_Table" => dotted(&filters.do_table).into(),
            "Replicate_Ignore_Table" => dotted(&filters.ignore_table).into(),
            "Replicate_Wild_Do_Table" => filters.wild_do_table.join(",").into(),
            "Replicate_Wild_Ignore_Table" => filters.wild_ignore_table.join(",").into(),
            "Replicate_Rewrite_DB" => rewritten(&filters.rewrite_db).into(),
            "Connect_Retry" => Value::UInt(config.connect_retry_s.into()),
            "Source_Log_File" => status.read_file.as_str().into(),
            "Relay_Source_Log_File" => status.applied.file.as_str().into(),
            "Read_Source_Log_Pos" => Value::UInt(status.read_position),
            "Exec_Source_Log_Pos" => Value::UInt(status.applied.position),
            "Replica_IO_Running" => reads.into(),
            "Replica_SQL_Running" => word(runs).into(),
            "Last_Errno" | "Last_SQL_Errno" => Value::UInt(code(applier)),
            "Last_Error" | "Last_SQL_Error" => message(applier).into(),
            "Last_IO_Errno" => Value::UInt(code(source)),
            "Last_IO_Error" => message(source).into(),
            "Last_IO_Error_Timestamp" => short_time(source.as_ref()).into(),
            "Last_SQL_Error_Timestamp" => short_time(applier.as_ref()).into(),
            "Until_Condition" => match status.until {
                None => "None",
                Some(Until::AfterGtids(_)) => "SQL_AFTER_GTIDS",
                Some(Until::BeforeGtids(_)) => "SQL_BEFORE_GTIDS",
                Some(Until::Position { .. }) => "Source",
            }
            .into(),
            "Until_Log_File" => until_place.0.as_str().into(),
            "Until_Log_Pos" => Value::UInt(until_place.1),
            "Source_SSL_Allowed" => word(config.ssl).into(),
            "Source_SSL_CA_File" => config.tls.ca.as_str().into(),
            "Source_SSL_Cert" => config.tls.cert.as_str().into(),
            "Source_SSL_Key" => config.tls.key.as_str().into(),
            "Source_SSL_Verify_Server_Cert" => word(config.tls.verify_name).into(),
            "Seconds_Behind_Source" if status.phase == ChannelPhase::Running => Value::UInt(behind),
            "Seconds_Behind_Source" => Value::Null,
            "SQL_Delay" => Value::UInt(config.delay_s.into()),
            "SQL_Remaining_Delay" => status.remaining_delay_s().map(Value::UInt).into(),
            "Source_Server_Id" => Value::UInt(status.source_id.into()),
            "Source_UUID" => status.source_uuid.as_str().into(),
            "Replica_SQL_Running_State" if status.due_us.is_some() => {
                "Waiting until SOURCE_DELAY seconds after source executed event".into()
            }
            "Replica_SQL_Running_State" if runs => "Waiting for an event from the source".into(),
            "Source_Retry_Count" => Value::UInt(config.retry_count),
            "Retrieved_Gtid_Set" => status.retrieved.to_string().into(),
            "Executed_Gtid_Set" => status.applied.gtids.to_string().into(),
            "Auto_Position" => Value::UInt(config.auto_position.into()),
            "Get_Source_public_key" => Value::UInt(config.get_public_key.into()),
            "Skip_Counter" | "Relay_Log_Pos" | "Relay_Log_Space" => Value::UInt(0),
            _ => "".into(),
        })
    }
}
