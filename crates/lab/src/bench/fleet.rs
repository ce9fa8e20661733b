//! The servers that a command line names, in the order of the table: `--dsn`, those started here,
//! `--compare`, the floor server.

use super::args::Args;
use super::servers::Server;
use super::started::{ServerKind, Setup};
use crate::LabError;
use crate::dsn::Dsn;

/// Connects to or starts all servers.
pub fn fleet(args: &Args) -> Result<Vec<Server>, LabError> {
    let mut servers = Vec::new();
    if let Some(dsn) = &args.dsn {
        servers.push(Server::given("server", Dsn::open(dsn)?));
    }
    // Before anything is started, so that an invalid DSN is reported at once.
    let compared = args
        .compare
        .iter()
        .map(|pair| compared(pair))
        .collect::<Result<Vec<_>, _>>()?;
    let started = args.start_nfold || args.start_mariadb || args.publish;
    if servers.is_empty() && compared.is_empty() && !started {
        return Err(LabError::usage(
            "no server: give --dsn, --compare NAME=DSN, --start-nfold, --start-mariadb or --publish",
        ));
    }
    let start = |name: &str, kind| {
        eprintln!("starting {name}");
        let setup = Setup {
            pool_mib: args.pool_mib,
            cores: args.cores.first().copied(),
            ..Setup::default()
        };
        Server::start(name, kind, setup)
    };
    if args.start_nfold || args.publish {
        servers.push(start("nfold", ServerKind::Nfold)?);
    }
    if args.start_mariadb || args.publish {
        servers.push(start("mariadb", ServerKind::MariaDb)?);
    }
    servers.extend(compared);
    if args.start_floor || args.publish {
        servers.push(start("floor", ServerKind::Floor)?);
    }
    for (i, server) in servers.iter().enumerate() {
        if servers[..i].iter().any(|s| s.name == server.name) {
            return Err(LabError::usage(format!(
                "two servers are called {:?}",
                server.name
            )));
        }
        if server.dsn.db.is_none() && args.replay.is_none() {
            return Err(LabError::usage(format!(
                "{}: the DSN names no database for the tables",
                server.name
            )));
        }
    }
    Ok(servers)
}

/// Parses `NAME=DSN`.
fn compared(pair: &str) -> Result<Server, LabError> {
    let named = pair
        .split_once('=')
        .filter(|(name, _)| !name.contains(['/', ':', '@']) && !name.is_empty());
    match named {
        Some((name, dsn)) => Ok(Server::given(name, Dsn::open(dsn)?)),
        None => Err(LabError::usage(format!(
            "--compare {pair:?}: NAME=DSN, such as old=mysql://app@10.0.0.5/shop"
        ))),
    }
}
