//! The numbers of the collations. A file of its own, because character sets name their collations
//! by them, and collations their character sets.

/// MySQL's number of a collation, as in the protocol and in `information_schema.COLLATIONS`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CollationId(pub u16);

impl CollationId {
    pub const LATIN1_SWEDISH_CI: CollationId = CollationId(8);
    pub const ASCII_GENERAL_CI: CollationId = CollationId(11);
    pub const UTF8MB3_GENERAL_CI: CollationId = CollationId(33);
    pub const UTF8MB4_GENERAL_CI: CollationId = CollationId(45);
    pub const UTF8MB4_BIN: CollationId = CollationId(46);
    pub const LATIN1_BIN: CollationId = CollationId(47);
    pub const LATIN1_GENERAL_CI: CollationId = CollationId(48);
    pub const LATIN1_GENERAL_CS: CollationId = CollationId(49);
    pub const BINARY: CollationId = CollationId(63);
    pub const ASCII_BIN: CollationId = CollationId(65);
    pub const UTF8MB3_BIN: CollationId = CollationId(83);
    pub const UTF8MB3_UNICODE_CI: CollationId = CollationId(192);
    pub const UTF8MB4_UNICODE_CI: CollationId = CollationId(224);
    pub const UTF8MB4_0900_AI_CI: CollationId = CollationId(255);
    pub const UTF8MB4_0900_AS_CS: CollationId = CollationId(278);
    pub const UTF8MB4_0900_AS_CI: CollationId = CollationId(305);
    pub const UTF8MB4_0900_BIN: CollationId = CollationId(309);
}
