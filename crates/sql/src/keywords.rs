//! MySQL's keywords. Each has a number, and is found in a hash table built at compile time.
//!
//! The keywords, and which of them are reserved, are those of `information_schema.keywords` in
//! MySQL 9.7, except that EXTERNAL and LIBRARY are not reserved, as in 8.4. Function words are
//! keywords only directly before a parenthesis.

macro_rules! keywords {
    (reserved: $($r:ident)*; free: $($n:ident)*; functions: $($f:ident)*;) => {
        /// A keyword; `Other` for any other word.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Kw { Other, $($r,)* $($n,)* $($f,)* }

        /// All keywords, indexed by their number.
        static ALL: &[Kw] = &[Kw::Other, $(Kw::$r,)* $(Kw::$n,)* $(Kw::$f,)*];
        const NAMES: &[&str] = &["", $(stringify!($r),)* $(stringify!($n),)* $(stringify!($f),)*];
        const RESERVED: usize = [$(stringify!($r)),*].len();
        const FREE: usize = [$(stringify!($n)),*].len();
    };
}

keywords! {
    reserved:
        ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY
        CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT
        CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE
        DATABASES DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE
        DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF
        EMPTY ENCLOSED ESCAPED EXCEPT EXISTS EXIT EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR
        FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT GROUP GROUPING GROUPS HAVING HIGH_PRIORITY
        HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE INSERT
        INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS IO_BEFORE_GTIDS IS
        ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT
        LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MATCH
        MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES
        NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC OF ON OPTIMIZE OPTIMIZER_COSTS OPTION
        OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION PERCENT_RANK PRECISION PRIMARY PROCEDURE PURGE
        QUALIFY RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT
        REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS
        SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL
        SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL STARTING
        STORED STRAIGHT_JOIN SYSTEM TABLE TABLESAMPLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING
        TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME
        UTC_TIMESTAMP VALUES VARBINARY VARCHAR VARCHARACTER VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH
        WRITE XOR YEAR_MONTH ZEROFILL;
    free:
        ABSENT ACCOUNT ACTION ACTIVE ADMIN AFTER AGAINST AGGREGATE ALGORITHM ALLOW_MISSING_FILES ALWAYS ANY
        ARRAY ASCII ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS AT ATTRIBUTE AUTHENTICATION AUTO AUTOEXTEND_SIZE
        AUTO_INCREMENT AUTO_REFRESH AUTO_REFRESH_SOURCE AVG AVG_ROW_LENGTH BACKUP BEGIN BERNOULLI BINLOG BIT
        BLOCK BOOL BOOLEAN BTREE BUCKETS BULK BYTE CACHE CASCADED CATALOG_NAME CHAIN CHALLENGE_RESPONSE
        CHANGED CHANNEL CHARSET CHECKSUM CIPHER CLASS_ORIGIN CLIENT CLONE CLOSE COALESCE CODE COLLATION
        COLUMNS COLUMN_FORMAT COLUMN_NAME COMMENT COMMIT COMMITTED COMPACT COMPLETION COMPONENT COMPRESSED
        COMPRESSION CONCURRENT CONNECTION CONSISTENT CONSTRAINT_CATALOG CONSTRAINT_NAME CONSTRAINT_SCHEMA
        CONTAINS CONTEXT CPU CURRENT CURSOR_NAME DATA DATAFILE DATE DATETIME DAY DEALLOCATE DEFAULT_AUTH
        DEFINER DEFINITION DELAY_KEY_WRITE DESCRIPTION DIAGNOSTICS DIRECTORY DISABLE DISCARD DISK DO DUALITY
        DUMPFILE DUPLICATE DYNAMIC ENABLE ENCRYPTION END ENDS ENFORCED ENGINE ENGINES ENGINE_ATTRIBUTE ENUM
        ERROR ERRORS ESCAPE EVENT EVENTS EVERY EXCHANGE EXCLUDE EXECUTE EXPANSION EXPIRE EXPORT EXTENDED
        EXTENT_SIZE EXTERNAL EXTERNAL_FORMAT FACTOR FAILED_LOGIN_ATTEMPTS FAST FAULTS FIELDS FILE FILES
        FILE_BLOCK_SIZE FILE_FORMAT FILE_NAME FILE_PATTERN FILE_PREFIX FILTER FINISH FIRST FIXED FLUSH
        FOLLOWING FOLLOWS FORMAT FOUND FULL GENERAL GENERATE GEOMCOLLECTION GEOMETRY GEOMETRYCOLLECTION
        GET_FORMAT GET_SOURCE_PUBLIC_KEY GLOBAL GRANTS GROUP_REPLICATION GTIDS GTID_ONLY GUIDED HANDLER HASH
        HEADER HELP HISTOGRAM HISTORY HOST HOSTS HOUR IDENTIFIED IGNORE_SERVER_IDS IMPORT INACTIVE INDEXES
        INITIAL INITIAL_SIZE INITIATE INSERT_METHOD INSTALL INSTANCE INVISIBLE INVOKER IO IO_THREAD IPC
        ISOLATION ISSUER JSON JSON_VALUE KEYRING KEY_BLOCK_SIZE LANGUAGE LAST LEAVES LESS LEVEL LIBRARY
        LINESTRING LIST LOCAL LOCKED LOCKS LOG LOGFILE LOGS MANUAL MASKING MASTER MATERIALIZED
        MAX_CONNECTIONS_PER_HOUR MAX_QUERIES_PER_HOUR MAX_ROWS MAX_SIZE MAX_UPDATES_PER_HOUR
        MAX_USER_CONNECTIONS MEDIUM MEMBER MEMORY MERGE MESSAGE_TEXT MICROSECOND MIGRATE MINUTE MIN_ROWS
        MODE MODIFY MONTH MULTILINESTRING MULTIPOINT MULTIPOLYGON MUTEX MYSQL_ERRNO NAME NAMES NATIONAL
        NCHAR NDB NDBCLUSTER NESTED NETWORK_NAMESPACE NEVER NEW NEXT NO NODEGROUP NONE NOWAIT NO_WAIT NULLS
        NUMBER NVARCHAR OFF OFFSET OJ OLD ONE ONLY OPEN OPTIONAL OPTIONS ORDINALITY ORGANIZATION OTHERS
        OWNER PACK_KEYS PAGE PARALLEL PARAMETERS PARSER PARSE_TREE PARTIAL PARTITIONING PARTITIONS PASSWORD
        PASSWORD_LOCK_TIME PATH PERSIST PERSIST_ONLY PHASE PLUGIN PLUGINS PLUGIN_DIR POINT POLICY POLYGON
        PORT PRECEDES PRECEDING PREPARE PRESERVE PREV PRIVILEGES PRIVILEGE_CHECKS_USER PROCESS PROCESSLIST
        PROFILE PROFILES PROXY QUARTER QUERY QUICK RANDOM READ_ONLY REBUILD RECOVER REDO_BUFFER_SIZE
        REDUNDANT REFERENCE REGISTRATION RELATIONAL RELAY RELAYLOG RELAY_LOG_FILE RELAY_LOG_POS RELAY_THREAD
        RELOAD REMOVE REORGANIZE REPAIR REPEATABLE REPLICA REPLICAS REPLICATE_DO_DB REPLICATE_DO_TABLE
        REPLICATE_IGNORE_DB REPLICATE_IGNORE_TABLE REPLICATE_REWRITE_DB REPLICATE_WILD_DO_TABLE
        REPLICATE_WILD_IGNORE_TABLE REPLICATION REQUIRE_ROW_FORMAT REQUIRE_TABLE_PRIMARY_KEY_CHECK RESET
        RESOURCE RESPECT RESTART RESTORE RESUME RETAIN RETURNED_SQLSTATE RETURNING RETURNS REUSE REVERSE
        ROLE ROLLBACK ROLLUP ROTATE ROUTINE ROW_COUNT ROW_FORMAT RTREE S3 SAVEPOINT SCHEDULE SCHEMA_NAME
        SECOND SECONDARY SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SECONDARY_LOAD SECONDARY_UNLOAD
        SECURITY SERIAL SERIALIZABLE SERVER SESSION SETS SHARE SHUTDOWN SIGNED SIMPLE SKIP SLAVE SLOW
        SNAPSHOT SOCKET SOME SONAME SOUNDS SOURCE SOURCE_AUTO_POSITION SOURCE_BIND
        SOURCE_COMPRESSION_ALGORITHMS SOURCE_CONNECTION_AUTO_FAILOVER SOURCE_CONNECT_RETRY SOURCE_DELAY
        SOURCE_HEARTBEAT_PERIOD SOURCE_HOST SOURCE_LOG_FILE SOURCE_LOG_POS SOURCE_PASSWORD SOURCE_PORT
        SOURCE_PUBLIC_KEY_PATH SOURCE_RETRY_COUNT SOURCE_SSL SOURCE_SSL_CA SOURCE_SSL_CAPATH SOURCE_SSL_CERT
        SOURCE_SSL_CIPHER SOURCE_SSL_CRL SOURCE_SSL_CRLPATH SOURCE_SSL_KEY SOURCE_SSL_VERIFY_SERVER_CERT
        SOURCE_TLS_CIPHERSUITES SOURCE_TLS_VERSION SOURCE_USER SOURCE_ZSTD_COMPRESSION_LEVEL SQL_AFTER_GTIDS
        SQL_AFTER_MTS_GAPS SQL_BEFORE_GTIDS SQL_BUFFER_RESULT SQL_NO_CACHE SQL_THREAD SQL_TSI_DAY
        SQL_TSI_HOUR SQL_TSI_MINUTE SQL_TSI_MONTH SQL_TSI_QUARTER SQL_TSI_SECOND SQL_TSI_WEEK SQL_TSI_YEAR
        SRID STACKED START STARTS STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES STATUS STOP STORAGE
        STREAM STRICT_LOAD STRING SUBCLASS_ORIGIN SUBJECT SUBPARTITION SUBPARTITIONS SUPER SUSPEND SWAPS
        SWITCHES TABLES TABLESPACE TABLE_CHECKSUM TABLE_NAME TEMPORARY TEMPTABLE TEXT THAN THREAD_PRIORITY
        TIES TIME TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TLS TRANSACTION TRIGGERS TRUNCATE TYPE TYPES
        UNBOUNDED UNCOMMITTED UNDEFINED UNDOFILE UNDO_BUFFER_SIZE UNICODE UNINSTALL UNKNOWN UNREGISTER UNTIL
        UPGRADE URI URL USER USER_RESOURCES USE_FRM VALIDATE VALIDATION VALUE VARIABLES VCPU VECTOR
        VERIFY_KEY_CONSTRAINTS VIEW VISIBLE WAIT WARNINGS WEEK WEIGHT_STRING WITHOUT WORK WRAPPER X509 XA
        XID XML YEAR ZONE;
    functions:
        ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT
        JSON_ARRAYAGG JSON_OBJECTAGG MAX MID MIN NOW POSITION SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP
        ST_COLLECT SUBDATE SUBSTR SUBSTRING SUM SYSDATE SYSTEM_USER TRIM VARIANCE VAR_POP VAR_SAMP;
}

/// The slots of the hash table, at most half of which are taken.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 11;
const LONGEST: usize = longest();

const fn longest() -> usize {
    let (mut i, mut max) = (0, 0);
    while i < NAMES.len() {
        if NAMES[i].len() > max {
            max = NAMES[i].len();
        }
        i += 1;
    }
    max
}

/// Clears the bit that tells lower case from upper case. The bytes of an identifier that differ
/// afterwards also differ without regard to ASCII case, and the other way round.
const FOLD: u64 = 0xdfdf_dfdf_dfdf_dfdf;

/// A word folded by [`FOLD`]: its first and its last eight bytes, which overlap in words of less
/// than 16. Shorter words of at least four bytes have both halves in the first number, and words of
/// two or three bytes likewise.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    first: u64,
    last: u64,
    len: usize,
}

impl Packed {
    #[inline(always)]
    const fn of(word: &[u8]) -> Packed {
        let len = word.len();
        let (first, last) = match (word.first_chunk(), word.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (word.first_chunk(), word.last_chunk()) {
                (Some(first), Some(last)) => {
                    let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
                    (first as u64 | (last as u64) << 32, 0)
                }
                _ => match (word.first_chunk(), word.last_chunk()) {
                    (Some(first), Some(last)) => {
                        let (first, last) = (u16::from_le_bytes(*first), u16::from_le_bytes(*last));
                        (first as u64 | (last as u64) << 32, 0)
                    }
                    _ => (0, 0),
                },
            },
        };
        Packed {
            first: first & FOLD,
            last: last & FOLD,
            len,
        }
    }

    /// Where the search of the hash table begins.
    #[inline(always)]
    const fn slot(self) -> usize {
        let mixed = self.first ^ self.last.rotate_left(29) ^ (self.len as u64) << 13;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOT_BITS)) as usize
    }
}

/// The names, packed.
static PACKED: [Packed; NAMES.len()] = packed();

const fn packed() -> [Packed; NAMES.len()] {
    let mut all = [Packed::of(b""); NAMES.len()];
    let mut i = 1;
    while i < NAMES.len() {
        all[i] = Packed::of(NAMES[i].as_bytes());
        i += 1;
    }
    all
}

/// The hash table: numbers of keywords, 0 in a free slot.
static TABLE: [u16; SLOTS] = table();

const fn table() -> [u16; SLOTS] {
    let mut table = [0u16; SLOTS];
    let mut i = 1;
    while i < NAMES.len() {
        let mut at = Packed::of(NAMES[i].as_bytes()).slot();
        while table[at] != 0 {
            at = (at + 1) & (SLOTS - 1);
        }
        table[at] = i as u16;
        i += 1;
    }
    table
}

impl Kw {
    /// The keyword that `word` is, ignoring ASCII case.
    pub fn of(word: &[u8]) -> Kw {
        let found = Kw::of_identifier(word);
        match found.name().as_bytes().eq_ignore_ascii_case(word) {
            true => found,
            false => Kw::Other,
        }
    }

    /// The keyword that `word` is, ignoring ASCII case. The word has only bytes that an unquoted
    /// identifier may have.
    // Once per word of each text.
    #[inline(always)]
    pub(crate) fn of_identifier(word: &[u8]) -> Kw {
        if word.len() < 2 || word.len() > LONGEST {
            return Kw::Other;
        }
        let packed = Packed::of(word);
        let mut at = packed.slot();
        loop {
            let i = TABLE[at] as usize;
            if i == 0 {
                return Kw::Other;
            }
            if PACKED[i] == packed && (word.len() <= 16 || is_long(word, i)) {
                return ALL[i];
            }
            at = (at + 1) & (SLOTS - 1);
        }
    }

    /// The name in upper case; empty for `Other`.
    #[inline]
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Whether the word can never be an unquoted identifier.
    #[inline]
    pub fn is_reserved(self) -> bool {
        let i = self as usize;
        i != 0 && i <= RESERVED
    }

    /// Whether the word is a keyword only if a parenthesis follows.
    #[inline]
    pub fn is_function(self) -> bool {
        self as usize > RESERVED + FREE
    }
}

/// Whether a word of more than 16 bytes is keyword `i`.
#[cold]
fn is_long(word: &[u8], i: usize) -> bool {
    NAMES[i].as_bytes().eq_ignore_ascii_case(word)
}

/// Every keyword of MySQL's list, and whether it is reserved.
pub fn words() -> impl Iterator<Item = (&'static str, bool)> {
    let listed = NAMES.iter().enumerate().skip(1).take(RESERVED + FREE);
    listed.map(|(i, name)| (*name, i <= RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_either_case() {
        for (i, name) in NAMES.iter().enumerate().skip(1) {
            assert_eq!(Kw::of(name.as_bytes()) as usize, i, "{name}");
            assert_eq!(Kw::of_identifier(name.as_bytes()) as usize, i, "{name}");
            assert_eq!(Kw::of(name.to_lowercase().as_bytes()).name(), *name);
        }
        for word in [
            "selec",
            "selects",
            "x",
            "",
            "foo",
            "ſelect",
            "a_very_long_identifier_that_is_longer_than_any_keyword",
            "MASTER_SSL_VERIFY_SERVER_CERTS",
            "SOURCE_CONNECTION_GUTO_FAILOVER",
        ] {
            assert_eq!(Kw::of(word.as_bytes()), Kw::Other, "{word}");
            assert_eq!(Kw::of_identifier(word.as_bytes()), Kw::Other, "{word}");
        }
        // Folds to FLOAT4, but has a byte that no identifier has.
        assert_eq!(Kw::of(b"FLOAT\x14"), Kw::Other);
    }

    #[test]
    fn classes() {
        assert!(Kw::SELECT.is_reserved() && !Kw::SELECT.is_function());
        assert!(!Kw::STATUS.is_reserved() && !Kw::STATUS.is_function());
        assert!(!Kw::COUNT.is_reserved() && Kw::COUNT.is_function());
        assert!(!Kw::Other.is_reserved() && !Kw::Other.is_function());
    }
}
