//! What an option is: its name, type, range, scope, and how it may be set.

/// The type and range of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// ON or OFF.
    Bool { default: bool },
    /// An integer; in a file with an optional suffix K, M, G, T.
    Int { default: u64, min: u64, max: u64 },
    /// An integer that may be negative; -1 often means "chosen by the server".
    Signed { default: i64, min: i64, max: i64 },
    /// A floating-point number.
    Real { default: f64, min: f64, max: f64 },
    /// A string; `None`: NULL or unset.
    Text { default: Option<&'static str> },
    /// One of several words, case-insensitive, or its number in the list.
    Choice {
        default: &'static str,
        values: &'static [&'static str],
    },
}

/// The scopes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `@@GLOBAL` only.
    Global,
    /// Global and session: a session's value starts as the global one.
    Both,
    /// Session only.
    Session,
}

/// The definition of an option.
#[derive(Debug, Clone, Copy)]
pub struct OptionDef {
    /// The name in lower case, with underscores.
    pub name: &'static str,
    pub kind: OptionKind,
    pub scope: Scope,
    /// Whether SET can change it at run time.
    pub dynamic: bool,
    /// Whether it is allowed in an option file or on the command line.
    pub startup: bool,
    /// Whether it has an effect. Otherwise it is accepted and shown, so that files and clients for
    /// MySQL work.
    pub effective: bool,
    /// Whether SET PERSIST and SET PERSIST_ONLY may store it.
    pub persisted: bool,
}

pub(super) const K: u64 = 1 << 10;
pub(super) const M: u64 = 1 << 20;
pub(super) const G: u64 = 1 << 30;

pub(super) const fn option(name: &'static str, kind: OptionKind, scope: Scope) -> OptionDef {
    OptionDef {
        name,
        kind,
        scope,
        dynamic: true,
        startup: true,
        effective: true,
        persisted: true,
    }
}

impl OptionDef {
    /// Set at start-up only.
    pub(super) const fn fixed(mut self) -> Self {
        self.dynamic = false;
        self
    }

    /// Set at run time only: by a session, or by the server itself.
    pub(super) const fn runtime(mut self) -> Self {
        self.startup = false;
        self
    }

    /// Set by a session only.
    pub(super) const fn session(mut self) -> Self {
        self.scope = Scope::Session;
        self
    }

    /// Never stored by SET PERSIST.
    pub(super) const fn unpersisted(mut self) -> Self {
        self.persisted = false;
        self
    }
}

pub(super) const fn int(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, OptionKind::Int { default, min, max }, Scope::Global)
}

pub(super) const fn int_both(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, OptionKind::Int { default, min, max }, Scope::Both)
}

pub(super) const fn signed(name: &'static str, default: i64, min: i64, max: i64) -> OptionDef {
    option(
        name,
        OptionKind::Signed { default, min, max },
        Scope::Global,
    )
}

pub(super) const fn signed_both(name: &'static str, default: i64, min: i64, max: i64) -> OptionDef {
    option(name, OptionKind::Signed { default, min, max }, Scope::Both)
}

pub(super) const fn flag(name: &'static str, default: bool) -> OptionDef {
    option(name, OptionKind::Bool { default }, Scope::Global)
}

pub(super) const fn flag_both(name: &'static str, default: bool) -> OptionDef {
    option(name, OptionKind::Bool { default }, Scope::Both)
}

pub(super) const fn text(name: &'static str, default: Option<&'static str>) -> OptionDef {
    option(name, OptionKind::Text { default }, Scope::Global)
}

pub(super) const fn text_both(name: &'static str, default: &'static str) -> OptionDef {
    option(
        name,
        OptionKind::Text {
            default: Some(default),
        },
        Scope::Both,
    )
}

pub(super) const fn choice(
    name: &'static str,
    default: &'static str,
    values: &'static [&'static str],
    scope: Scope,
) -> OptionDef {
    option(name, OptionKind::Choice { default, values }, scope)
}
