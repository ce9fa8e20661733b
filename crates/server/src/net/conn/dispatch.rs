//! The body of a fiber: opens the session, runs complete commands from the receive buffer one after
//! another, or ends the session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nfold_protocol::command::{self, Command};
use nfold_protocol::consts::{cap, com};
use nfold_protocol::frame::{Frame, FrameError, HEADER, join, next_frame};
use nfold_protocol::response;

use super::{Conn, Phase};
use crate::net::fiber::compression::Algorithm;
use crate::net::fiber::handler::{ClientError, LoginInfo, SessionFactory, SessionHandler};
use crate::net::fiber::writer::ResponseWriter;
use crate::net::worker::{FiberCx, Interrupt, counters_add};

/// Why a fiber is started.
pub(crate) enum Job {
    /// The client is authenticated: open its session.
    Login(LoginInfo),
    /// COM_CHANGE_USER: the client is authenticated again, and has a session.
    ChangeUser(LoginInfo),
    /// The receive buffer has complete commands.
    Commands,
    /// An answer has not been sent completely.
    Flush,
    /// The client has disconnected, or timed out.
    Disconnect,
}

/// The state of the connection after its fiber has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    KeepOpen,
    /// Everything is sent, and the session has ended.
    Close,
    /// As [`After::Close`], but the client is still sending. The server reads on briefly, so that
    /// the client receives the error.
    Linger,
}

/// The body of a fiber. It never unwinds.
pub(crate) fn run(
    conn: &mut Conn,
    cx: &FiberCx<'_>,
    factory: &dyn SessionFactory,
    job: Job,
) -> After {
    conn.output.borrow(cx.local);
    let after = match catch_unwind(AssertUnwindSafe(|| run_job(conn, cx, factory, job))) {
        Ok(after) => after,
        Err(_) => after_panic(conn, cx, factory),
    };
    if after != After::KeepOpen {
        end_session(conn, cx, factory);
    }
    after
}

fn run_job(conn: &mut Conn, cx: &FiberCx<'_>, factory: &dyn SessionFactory, job: Job) -> After {
    let flushes = matches!(job, Job::Flush);
    let after = match job {
        Job::Login(info) => login(conn, cx, factory, info),
        Job::ChangeUser(info) => change_user(conn, cx, info),
        Job::Commands => commands(conn, cx),
        Job::Flush => After::KeepOpen,
        Job::Disconnect => After::Close,
    };
    let outbox = cx.local.outbox.borrow();
    if after == After::KeepOpen && !flushes && outbox.takes(&conn.output, &conn.transport) {
        // The event loop parks the connection.
        return after;
    }
    drop(outbox);
    match conn.output.send(&mut conn.transport, cx) {
        Ok(()) => after,
        Err(Interrupt::ConnectionLost) => {
            counters_add(&cx.local.counters.aborted_clients, 1);
            After::Close
        }
        Err(_) => After::Close,
    }
}

/// After a panic in a statement: sends an error and ends the connection, because the state of the
/// session is unknown.
fn after_panic(conn: &mut Conn, cx: &FiberCx<'_>, factory: &dyn SessionFactory) -> After {
    if !factory.survives_panic() {
        tracing::error!(
            "a statement panicked while it held a latch or a mini-transaction; the server ends"
        );
        std::process::abort();
    }
    tracing::error!(
        "a statement of connection {} panicked; its connection is closed",
        conn.link.slot.id
    );
    // The sent part may end inside a packet, so an answer can be replaced only if nothing of it was
    // sent.
    if conn.output.sent == 0 {
        conn.output.reset();
        let error = ClientError::new(
            1815,
            "HY000",
            "Internal error: the statement failed unexpectedly",
        );
        conn.error_packet(conn.answer_sequence, &error);
        let _ = conn.output.send(&mut conn.transport, cx);
    }
    After::Close
}

fn end_session(conn: &mut Conn, cx: &FiberCx<'_>, factory: &dyn SessionFactory) {
    cx.masked.set(true);
    cx.lift_limits();
    if let Some(mut session) = conn.session.take() {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            session.disconnected(cx);
            drop(session);
        }));
        if ended.is_err() && !factory.survives_panic() {
            tracing::error!(
                "a session panicked at its end while it held a latch or a mini-transaction; the server ends"
            );
            std::process::abort();
        }
    }
}

fn login(
    conn: &mut Conn,
    cx: &FiberCx<'_>,
    factory: &dyn SessionFactory,
    info: LoginInfo,
) -> After {
    conn.answer_sequence = conn.sequence;
    conn.link
        .slot
        .set_identity(&info.user, info.database.as_deref());
    match factory.connect(cx, info) {
        Ok(mut session) => {
            let (status, changes) = (session.status_flags(), session.take_changes());
            conn.session = Some(session);
            conn.phase = Phase::Command;
            conn.ok_packet(status, changes.as_deref());
            match Algorithm::of(conn.capabilities) {
                Some(algorithm) => start_compression(conn, cx, algorithm),
                None => After::KeepOpen,
            }
        }
        Err(e) => {
            counters_add(&cx.local.counters.aborted_connects, 1);
            conn.error_packet(conn.sequence, &e);
            After::Close
        }
    }
}

/// Sends what the login has written. All later bytes are compressed, in both directions.
fn start_compression(conn: &mut Conn, cx: &FiberCx<'_>, algorithm: Algorithm) -> After {
    if conn.output.send(&mut conn.transport, cx).is_err() {
        counters_add(&cx.local.counters.aborted_clients, 1);
        return After::Close;
    }
    let early = conn.input.data();
    conn.transport.start_compression(algorithm, early);
    conn.input.clear();
    After::KeepOpen
}

fn change_user(conn: &mut Conn, cx: &FiberCx<'_>, info: LoginInfo) -> After {
    conn.answer_sequence = conn.sequence;
    conn.link
        .slot
        .set_identity(&info.user, info.database.as_deref());
    let Some(session) = &mut conn.session else {
        return After::Close;
    };
    match session.change_user(cx, info) {
        Ok(()) => {
            let (status, changes) = (session.status_flags(), session.take_changes());
            conn.phase = Phase::Command;
            conn.ok_packet(status, changes.as_deref());
            After::KeepOpen
        }
        Err(e) => {
            conn.error_packet(conn.sequence, &e);
            After::Close
        }
    }
}

/// Runs complete commands until none is left or the connection's time slice is over.
fn commands(conn: &mut Conn, cx: &FiberCx<'_>) -> After {
    loop {
        let max = cx.limits().max_allowed_packet;
        let (len, total, sequence) = match next_frame(conn.input.data(), 0, max) {
            Ok(Frame::Whole { len, sequence }) => {
                if len > 0 && conn.input.data()[HEADER] == com::CHANGE_USER {
                    // The event loop authenticates the client.
                    return After::KeepOpen;
                }
                (len, HEADER + len, sequence)
            }
            Ok(Frame::Split {
                total,
                last_sequence,
                ..
            }) => (join(conn.input.data_mut(), total), total, last_sequence),
            Ok(Frame::Partial { .. }) => return After::KeepOpen,
            Err(e) => {
                conn.frame_error(e);
                return After::Linger;
            }
        };
        let before = cx.now();
        let flow = one_command(conn, cx, len, sequence.wrapping_add(1));
        conn.input.consume(total);
        if let Some(after) = flow {
            return after;
        }
        // The end of the statement has already read the clock.
        if conn.input.is_empty() || cx.slice_over_since(before) {
            return After::KeepOpen;
        }
    }
}

/// Runs the command in the first `len` payload bytes of the receive buffer.
fn one_command(conn: &mut Conn, cx: &FiberCx<'_>, len: usize, sequence: u8) -> Option<After> {
    conn.answer_sequence = sequence;
    let Conn {
        input,
        output,
        transport,
        session,
        capabilities,
        link,
        ..
    } = conn;
    let slot = &link.slot;
    let session = session.as_deref_mut()?;
    let payload = &input.data()[HEADER..HEADER + len];
    counters_add(&cx.local.counters.commands, 1);
    cx.local.just_ended.set(None);
    let now_us = cx.local.registry.us(cx.slice_start());
    let text: &[u8] = match payload.first() {
        Some(&(com::QUERY | com::STMT_PREPARE | com::INIT_DB)) => &payload[1..],
        _ => &[],
    };
    slot.begin(payload.first().copied().unwrap_or(com::SLEEP), now_us, text);
    let mut out = ResponseWriter::new(
        output,
        transport,
        cx,
        *capabilities,
        sequence,
        session.status_flags(),
    );
    let mut flow = None;
    match command::parse(payload) {
        Ok(Command::Quit) => flow = Some(After::Close),
        Ok(Command::SetOption(on)) => {
            *capabilities &= !cap::MULTI_STATEMENTS;
            *capabilities |= if on { cap::MULTI_STATEMENTS } else { 0 };
            out.set_capabilities(*capabilities);
            out.end_rows(0);
        }
        Ok(command) => answer(session, cx, command, &mut out),
        Err(_) if payload.is_empty() => out.error(&unknown_command()),
        Err(e) => {
            tracing::debug!("connection {}: {e}", slot.id);
            let message = "Malformed communication packet.";
            out.error(&ClientError::new(1835, "HY000", message));
        }
    }
    cx.lift_limits();
    let unread = out.take_unread();
    slot.end(now_us);
    if let Some(unread) = unread {
        input.append(cx.local, unread);
    }
    if slot.killed() == Some(crate::net::worker::KillKind::Connection) {
        return Some(After::Close);
    }
    flow
}

fn unknown_command() -> ClientError {
    ClientError::new(1047, "08S01", "Unknown command")
}

fn answer(
    session: &mut dyn SessionHandler,
    cx: &FiberCx<'_>,
    command: Command<'_>,
    out: &mut ResponseWriter<'_>,
) {
    match command {
        Command::Query(sql) => session.query(cx, sql, out),
        Command::StmtExecute(header) => session.execute(cx, header, out),
        Command::StmtPrepare(sql) => session.prepare(cx, sql, out),
        Command::StmtClose(id) => session.close_statement(id),
        Command::StmtReset(id) => session.reset_statement(cx, id, out),
        Command::StmtFetch { statement, rows } => session.fetch(cx, statement, rows, out),
        Command::StmtSendLongData {
            statement,
            parameter,
            data,
        } => session.send_long_data(statement, parameter, data),
        Command::Ping => session.ping(out),
        Command::InitDb(name) => session.init_db(cx, name, out),
        Command::FieldList { table, wildcard } => session.field_list(cx, table, wildcard, out),
        Command::ResetConnection => session.reset_connection(cx, out),
        Command::ProcessKill(id) => session.kill(cx, id, out),
        Command::RegisterReplica(replica) => session.register_replica(cx, replica, out),
        Command::BinlogDump(dump) => session.binlog_dump(cx, dump, out),
        Command::Statistics => out.raw(session.statistics(cx).as_bytes()),
        Command::Quit
        | Command::SetOption(_)
        | Command::ChangeUser(_)
        | Command::Debug
        | Command::Unknown(_) => out.error(&unknown_command()),
    }
}

impl Conn {
    /// Appends an ERR packet.
    pub fn error_packet(&mut self, sequence: u8, e: &ClientError) {
        self.packet(sequence, |out| {
            response::encode_err(out, e.code, &e.sqlstate, e.message.as_bytes())
        });
    }

    fn ok_packet(&mut self, status: u16, changes: Option<&[u8]>) {
        self.packet(self.sequence, |out| {
            let ok = response::Ok {
                status,
                ..response::Ok::default()
            };
            match changes {
                Some(state) => response::encode_ok_with_state(out, 0, &ok, state),
                None => response::encode_ok(out, 0, &ok),
            }
        });
    }

    /// Appends the error for a malformed packet.
    pub fn frame_error(&mut self, e: FrameError) {
        let (sequence, error) = match e {
            FrameError::TooLarge { sequence } => (
                sequence.wrapping_add(1),
                ClientError::new(
                    1153,
                    "08S01",
                    "Got a packet bigger than 'max_allowed_packet' bytes",
                ),
            ),
            FrameError::OutOfOrder => (
                self.input.data().get(3).map_or(0, |s| s.wrapping_add(1)),
                ClientError::new(1156, "08S01", "Got packets out of order"),
            ),
        };
        self.error_packet(sequence, &error);
    }
}
