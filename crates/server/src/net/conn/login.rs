//! The connection phase as a state machine over received packets: greeting, TLS, authentication,
//! and COM_CHANGE_USER.
//!
//! It runs in the event loop, without a fiber. So a client that is not authenticated costs a socket
//! and a few bytes.

use std::time::{Duration, Instant};

use nfold_catalog::{CertificateRule, LockDays};
use nfold_protocol::Malformed;
use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, cap, status};
use nfold_protocol::frame::{Frame, FrameError, HEADER, next_frame};
use nfold_protocol::handshake::{
    ClientHello, Greeting, Login, SALT, attributes, encode_auth_more_data, encode_auth_switch,
    parse_change_user, parse_hello,
};
use nfold_types::{ErrorCode, SqlError};

use super::{Conn, Phase};
use crate::net::auth::{Authenticator, Exchange, Outcome, satisfies};
use crate::net::fiber::compression::Algorithm;
use crate::net::fiber::handler::{ClientError, LoginInfo};

/// The maximum size of a packet before authentication, in bytes.
const MAX_LOGIN_PACKET: usize = 64 << 10;

pub(crate) struct LoginState {
    salt: [u8; SALT],
    offered: u32,
    stage: Stage,
    claim: Claim,
}

/// The client's claims about itself, which are not proved yet.
#[derive(Default)]
struct Claim {
    user: String,
    database: Option<String>,
    collation: u16,
    attributes: Vec<(String, String)>,
    zstd_level: u8,
    /// COM_CHANGE_USER: the connection has a session already.
    change_user: bool,
}

enum Stage {
    /// Waiting for the answer to the greeting. `after_tls`: for the second answer, inside TLS.
    Hello {
        after_tls: bool,
    },
    Proof(Exchange),
}

/// The next action of the event loop.
pub(crate) enum LoginStep {
    /// Send the buffer and wait for more input.
    NeedInput,
    Authenticated(LoginInfo, bool),
    /// Send the error in the buffer, then close.
    Refused,
}

impl Conn {
    /// Writes the greeting, and starts the connection phase.
    pub fn greet(&mut self, auth: &Authenticator, timeout: Duration) {
        let salt = auth.new_salt();
        let compression = auth.registry.tunables().compression().capabilities();
        let tls = if auth.tls.is_some() { cap::SSL } else { 0 };
        let offered = cap::SERVER | compression | tls;
        let greeting = Greeting {
            server_version: &auth.server_version,
            connection_id: self.link.slot.id,
            salt: &salt,
            capabilities: offered,
            collation: 255,
            status: status::AUTOCOMMIT,
            plugin: CACHING_SHA2_PASSWORD,
        };
        self.packet(0, |out| greeting.encode(out));
        self.deadline = Some(Instant::now() + timeout);
        self.phase = Phase::Login(Box::new(LoginState {
            salt,
            offered,
            stage: Stage::Hello { after_tls: false },
            claim: Claim::default(),
        }));
    }

    /// Handles one packet of the connection phase, if it is complete.
    #[inline(never)]
    pub fn login_step(&mut self, auth: &Authenticator) -> LoginStep {
        let Phase::Login(mut state) = std::mem::replace(&mut self.phase, Phase::Closing) else {
            return LoginStep::Refused;
        };
        let (len, sequence) = match next_frame(self.input.data(), self.sequence, MAX_LOGIN_PACKET) {
            Ok(Frame::Whole { len, sequence }) => (len, sequence),
            Ok(Frame::Partial { .. }) => {
                self.phase = Phase::Login(state);
                return LoginStep::NeedInput;
            }
            Ok(Frame::Split { .. }) | Err(FrameError::TooLarge { .. }) => {
                return self.refuse(bad_handshake());
            }
            Err(e @ FrameError::OutOfOrder) => {
                self.frame_error(e);
                return LoginStep::Refused;
            }
        };
        self.sequence = sequence.wrapping_add(1);
        let payload = self.input.data()[HEADER..HEADER + len].to_vec();
        self.input.consume(HEADER + len);
        let step = self.login_packet(auth, &mut state, &payload);
        match step {
            Ok(step @ LoginStep::NeedInput) => {
                self.phase = Phase::Login(state);
                step
            }
            Ok(step) => step,
            Err(e) => self.refuse(e),
        }
    }

    /// Starts COM_CHANGE_USER: authenticates as on a new connection. The buffer has its
    /// `payload_len` bytes.
    #[inline(never)]
    pub fn begin_change_user(&mut self, auth: &Authenticator, payload_len: usize) -> LoginStep {
        let body = self.input.data()[HEADER + 1..HEADER + payload_len].to_vec();
        self.sequence = self.input.data()[3].wrapping_add(1);
        self.input.consume(HEADER + payload_len);
        let mut state = Box::new(LoginState {
            salt: auth.new_salt(),
            offered: self.capabilities,
            stage: Stage::Hello { after_tls: true },
            claim: Claim::default(),
        });
        let begun = match parse_change_user(&body, self.capabilities) {
            // The client may have computed its answer from the greeting's challenge, which the
            // server does not store. So it always gets a new challenge.
            Ok(login) => {
                let login = Login {
                    auth_response: &[],
                    plugin: None,
                    ..login
                };
                self.begin_proof(auth, &mut state, &login, true)
            }
            Err(_) => Err(bad_handshake()),
        };
        match begun {
            Ok(step @ LoginStep::NeedInput) => {
                self.phase = Phase::Login(state);
                step
            }
            Ok(step) => step,
            Err(e) => self.refuse(e),
        }
    }

    /// Ends the connection phase with an error.
    pub fn refuse(&mut self, e: ClientError) -> LoginStep {
        self.error_packet(self.sequence, &e);
        self.phase = Phase::Closing;
        LoginStep::Refused
    }

    fn login_packet(
        &mut self,
        auth: &Authenticator,
        state: &mut LoginState,
        payload: &[u8],
    ) -> Result<LoginStep, ClientError> {
        if let Stage::Proof(exchange) = &mut state.stage {
            let secure = self.transport.is_secure();
            let outcome = exchange.answer(auth, payload, secure);
            return self.proceed(auth, state, outcome);
        }
        let hello = parse_hello(payload, state.offered).map_err(|Malformed(what)| {
            tracing::debug!("connection {}: {what}", self.link.slot.id);
            bad_handshake()
        })?;
        match (hello, &state.stage) {
            (ClientHello::Tls { .. }, Stage::Hello { after_tls: false }) => {
                self.begin_tls(auth)?;
                state.stage = Stage::Hello { after_tls: true };
                Ok(LoginStep::NeedInput)
            }
            (ClientHello::Tls { .. }, _) => Err(bad_handshake()),
            (ClientHello::Login(login), _) => {
                self.capabilities = login.capabilities;
                self.begin_proof(auth, state, &login, false)
            }
        }
    }

    fn begin_tls(&mut self, auth: &Authenticator) -> Result<(), ClientError> {
        let config = auth.tls.clone().ok_or_else(bad_handshake)?;
        let tls = rustls::ServerConnection::new(config).map_err(|_| bad_handshake())?;
        let early = self.input.data().to_vec();
        self.input.clear();
        self.transport.start_tls(tls, &early).map_err(|e| {
            tracing::debug!("connection {}: TLS: {e}", self.link.slot.id);
            bad_handshake()
        })
    }

    fn begin_proof(
        &mut self,
        auth: &Authenticator,
        state: &mut LoginState,
        login: &Login<'_>,
        change_user: bool,
    ) -> Result<LoginStep, ClientError> {
        if auth.registry.tunables().require_secure_transport() && !self.transport.is_secure() {
            return Err(ClientError::new(
                3159,
                "HY000",
                "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
            ));
        }
        let is_plain = Algorithm::of(self.capabilities).is_none();
        if is_plain && !auth.registry.tunables().compression().uncompressed {
            let code = ErrorCode::ER_WRONG_COMPRESSION_ALGORITHM_CLIENT;
            return Err(ClientError::from(&SqlError::new(code, &[&"uncompressed"])));
        }
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        state.claim = Claim {
            user: text(login.user),
            database: login.database.map(text),
            collation: login.collation,
            attributes: attributes(login.attributes)
                .unwrap_or_default()
                .iter()
                .map(|(k, v)| (text(k), text(v)))
                .collect(),
            zstd_level: login.zstd_level,
            change_user,
        };
        let (exchange, outcome) = Exchange::begin(
            auth,
            &state.claim.user,
            self.peer,
            login.plugin,
            login.auth_response,
            state.salt,
        );
        state.stage = Stage::Proof(exchange);
        self.proceed(auth, state, outcome)
    }

    fn proceed(
        &mut self,
        auth: &Authenticator,
        state: &mut LoginState,
        outcome: Outcome,
    ) -> Result<LoginStep, ClientError> {
        match outcome {
            Outcome::Switch { plugin, salt } => {
                self.packet(self.sequence, |out| encode_auth_switch(out, plugin, &salt));
                Ok(LoginStep::NeedInput)
            }
            Outcome::More(data) => {
                self.packet(self.sequence, |out| encode_auth_more_data(out, &data));
                Ok(LoginStep::NeedInput)
            }
            Outcome::Accepted { account, more } => {
                if let Some(data) = more {
                    self.packet(self.sequence, |out| encode_auth_more_data(out, &data));
                }
                let presents = |rule: &CertificateRule| {
                    self.transport.tls().is_some_and(|tls| satisfies(tls, rule))
                };
                if account.require_tls && !self.transport.is_tls()
                    || !account.certificate.as_deref().is_none_or(presents)
                {
                    // As in MySQL, the message does not say why.
                    return Err(denied(
                        auth,
                        &state.claim.user,
                        &self.peer.host_name(),
                        true,
                    ));
                }
                let claim = std::mem::take(&mut state.claim);
                if self.in_reserve && !account.connection_admin {
                    return Err(too_many_connections());
                }
                let info = LoginInfo {
                    connection_id: self.link.slot.id,
                    user: claim.user,
                    client_host: self.peer.host_name(),
                    account_user: account.user,
                    account_host: account.host,
                    database: claim.database,
                    collation: claim.collation,
                    capabilities: self.capabilities,
                    attributes: claim.attributes,
                    tls: self.transport.is_tls(),
                    local: self.peer.is_local(),
                    zstd_level: claim.zstd_level,
                };
                Ok(LoginStep::Authenticated(info, claim.change_user))
            }
            Outcome::Denied { password_used } => {
                let (user, host) = (&state.claim.user, self.peer.host_name());
                Err(denied(auth, user, &host, password_used))
            }
            Outcome::Blocked(blocked) => {
                let (user, host) = (&state.claim.user, self.peer.host_name());
                let days = |days| match days {
                    LockDays::Days(days) => days.to_string(),
                    LockDays::Unbounded => "unlimited".into(),
                };
                let (all, left) = (days(blocked.days), days(blocked.remaining));
                let code =
                    ErrorCode::ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK;
                let error = SqlError::new(code, &[user, &host, &all, &left, &blocked.failures]);
                Err(ClientError::from(&error))
            }
            Outcome::Locked => {
                let (user, host) = (&state.claim.user, self.peer.host_name());
                Err(ClientError::new(
                    3118,
                    "HY000",
                    format!("Access denied for user '{user}'@'{host}'. Account is locked."),
                ))
            }
        }
    }
}

/// Error 1045.
fn denied(auth: &Authenticator, user: &str, host: &str, password_used: bool) -> ClientError {
    if auth.log_denied {
        tracing::info!("access denied for user '{user}'@'{host}'");
    }
    let used = if password_used { "YES" } else { "NO" };
    ClientError::new(
        1045,
        "28000",
        format!("Access denied for user '{user}'@'{host}' (using password: {used})"),
    )
}

fn bad_handshake() -> ClientError {
    ClientError::new(1043, "08S01", "Bad handshake")
}

/// Error 1040.
pub(crate) fn too_many_connections() -> ClientError {
    ClientError::new(1040, "08004", "Too many connections")
}
