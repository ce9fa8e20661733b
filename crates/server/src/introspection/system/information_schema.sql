-- The tables of information_schema: names, columns and types are MySQL's (manual, "INFORMATION_SCHEMA Tables"). The default
-- collation is utf8mb3_general_ci; JSON columns are LONGTEXT. `system` reads this text once; `system::rows` makes the rows.

CREATE TABLE ADMINISTRABLE_ROLE_AUTHORIZATIONS (
  `USER` varchar(97),
  `HOST` varchar(256),
  `GRANTEE` varchar(97) COLLATE utf8mb4_0900_ai_ci,
  `GRANTEE_HOST` varchar(256) COLLATE utf8mb4_0900_ai_ci,
  `ROLE_NAME` varchar(255) COLLATE utf8mb4_0900_ai_ci,
  `ROLE_HOST` varchar(256) COLLATE utf8mb4_0900_ai_ci,
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT '',
  `IS_DEFAULT` varchar(3),
  `IS_MANDATORY` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE APPLICABLE_ROLES (
  `USER` varchar(97),
  `HOST` varchar(256),
  `GRANTEE` varchar(97) COLLATE utf8mb4_0900_ai_ci,
  `GRANTEE_HOST` varchar(256) COLLATE utf8mb4_0900_ai_ci,
  `ROLE_NAME` varchar(255) COLLATE utf8mb4_0900_ai_ci,
  `ROLE_HOST` varchar(256) COLLATE utf8mb4_0900_ai_ci,
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT '',
  `IS_DEFAULT` varchar(3),
  `IS_MANDATORY` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE CHARACTER_SETS (
  `CHARACTER_SET_NAME` varchar(64) NOT NULL,
  `DEFAULT_COLLATE_NAME` varchar(64) NOT NULL,
  `DESCRIPTION` varchar(2048) NOT NULL,
  `MAXLEN` int unsigned NOT NULL
);

CREATE TABLE CHECK_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_NAME` varchar(64) NOT NULL,
  `CHECK_CLAUSE` longtext COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE COLLATIONS (
  `COLLATION_NAME` varchar(64) NOT NULL,
  `CHARACTER_SET_NAME` varchar(64) NOT NULL,
  `ID` bigint unsigned NOT NULL DEFAULT '0',
  `IS_DEFAULT` varchar(3) NOT NULL DEFAULT '',
  `IS_COMPILED` varchar(3) NOT NULL DEFAULT '',
  `SORTLEN` int unsigned NOT NULL,
  `PAD_ATTRIBUTE` enum('PAD SPACE','NO PAD') COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE COLLATION_CHARACTER_SET_APPLICABILITY (
  `COLLATION_NAME` varchar(64) NOT NULL,
  `CHARACTER_SET_NAME` varchar(64) NOT NULL
);

CREATE TABLE COLUMNS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_NAME` varchar(64),
  `ORDINAL_POSITION` int unsigned NOT NULL,
  `COLUMN_DEFAULT` text COLLATE utf8mb3_bin,
  `IS_NULLABLE` varchar(3) NOT NULL DEFAULT '',
  `DATA_TYPE` longtext COLLATE utf8mb3_bin,
  `CHARACTER_MAXIMUM_LENGTH` bigint,
  `CHARACTER_OCTET_LENGTH` bigint,
  `NUMERIC_PRECISION` bigint unsigned,
  `NUMERIC_SCALE` bigint unsigned,
  `DATETIME_PRECISION` int unsigned,
  `CHARACTER_SET_NAME` varchar(64),
  `COLLATION_NAME` varchar(64),
  `COLUMN_TYPE` mediumtext COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_KEY` enum('','PRI','UNI','MUL') COLLATE utf8mb3_bin NOT NULL,
  `EXTRA` varchar(256),
  `PRIVILEGES` varchar(154),
  `COLUMN_COMMENT` text COLLATE utf8mb3_bin NOT NULL,
  `GENERATION_EXPRESSION` longtext COLLATE utf8mb3_bin NOT NULL,
  `SRS_ID` int unsigned
);

CREATE TABLE COLUMNS_EXTENSIONS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_NAME` varchar(64),
  `ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin,
  `SECONDARY_ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin
);

CREATE TABLE COLUMN_PRIVILEGES (
  `GRANTEE` varchar(292) NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(512) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` varchar(64) NOT NULL DEFAULT '',
  `TABLE_NAME` varchar(64) NOT NULL DEFAULT '',
  `COLUMN_NAME` varchar(64) NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` varchar(64) NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE COLUMN_STATISTICS (
  `SCHEMA_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_NAME` varchar(64) NOT NULL,
  `HISTOGRAM` json NOT NULL
);

CREATE TABLE ENABLED_ROLES (
  `ROLE_NAME` varchar(255) COLLATE utf8mb4_0900_ai_ci,
  `ROLE_HOST` varchar(255) COLLATE utf8mb4_0900_ai_ci,
  `IS_DEFAULT` varchar(3),
  `IS_MANDATORY` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE ENGINES (
  `ENGINE` varchar(64) NOT NULL DEFAULT '',
  `SUPPORT` varchar(8) NOT NULL DEFAULT '',
  `COMMENT` varchar(80) NOT NULL DEFAULT '',
  `TRANSACTIONS` varchar(3) DEFAULT '',
  `XA` varchar(3) DEFAULT '',
  `SAVEPOINTS` varchar(3) DEFAULT ''
);

CREATE TABLE EVENTS (
  `EVENT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `EVENT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `EVENT_NAME` varchar(64) NOT NULL,
  `DEFINER` varchar(288) COLLATE utf8mb3_bin NOT NULL,
  `TIME_ZONE` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `EVENT_BODY` varchar(3) NOT NULL DEFAULT '',
  `EVENT_DEFINITION` longtext COLLATE utf8mb3_bin NOT NULL,
  `EVENT_TYPE` varchar(9) NOT NULL DEFAULT '',
  `EXECUTE_AT` datetime,
  `INTERVAL_VALUE` varchar(256),
  `INTERVAL_FIELD` enum('YEAR','QUARTER','MONTH','DAY','HOUR','MINUTE','WEEK','SECOND','MICROSECOND','YEAR_MONTH','DAY_HOUR','DAY_MINUTE','DAY_SECOND','HOUR_MINUTE','HOUR_SECOND','MINUTE_SECOND','DAY_MICROSECOND','HOUR_MICROSECOND','MINUTE_MICROSECOND','SECOND_MICROSECOND') COLLATE utf8mb3_bin,
  `SQL_MODE` set('REAL_AS_FLOAT','PIPES_AS_CONCAT','ANSI_QUOTES','IGNORE_SPACE','NOT_USED','ONLY_FULL_GROUP_BY','NO_UNSIGNED_SUBTRACTION','NO_DIR_IN_CREATE','NOT_USED_9','NOT_USED_10','NOT_USED_11','NOT_USED_12','NOT_USED_13','NOT_USED_14','NOT_USED_15','NOT_USED_16','NOT_USED_17','NOT_USED_18','ANSI','NO_AUTO_VALUE_ON_ZERO','NO_BACKSLASH_ESCAPES','STRICT_TRANS_TABLES','STRICT_ALL_TABLES','NO_ZERO_IN_DATE','NO_ZERO_DATE','ALLOW_INVALID_DATES','ERROR_FOR_DIVISION_BY_ZERO','TRADITIONAL','NOT_USED_29','HIGH_NOT_PRECEDENCE','NO_ENGINE_SUBSTITUTION','PAD_CHAR_TO_FULL_LENGTH','TIME_TRUNCATE_FRACTIONAL','INTERPRET_UTF8_AS_UTF8MB4') COLLATE utf8mb3_bin NOT NULL,
  `STARTS` datetime,
  `ENDS` datetime,
  `STATUS` varchar(21) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `ON_COMPLETION` varchar(12) NOT NULL DEFAULT '',
  `CREATED` timestamp NOT NULL,
  `LAST_ALTERED` timestamp NOT NULL,
  `LAST_EXECUTED` datetime,
  `EVENT_COMMENT` varchar(2048) COLLATE utf8mb3_bin NOT NULL,
  `ORIGINATOR` int unsigned NOT NULL,
  `CHARACTER_SET_CLIENT` varchar(64) NOT NULL,
  `COLLATION_CONNECTION` varchar(64) NOT NULL,
  `DATABASE_COLLATION` varchar(64) NOT NULL
);

CREATE TABLE FILES (
  `FILE_ID` bigint,
  `FILE_NAME` text COLLATE utf8mb3_bin,
  `FILE_TYPE` varchar(256),
  `TABLESPACE_NAME` varchar(268) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_CATALOG` varchar(0) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` varbinary(0),
  `TABLE_NAME` varbinary(0),
  `LOGFILE_GROUP_NAME` varchar(256),
  `LOGFILE_GROUP_NUMBER` bigint,
  `ENGINE` varchar(64) NOT NULL,
  `FULLTEXT_KEYS` varbinary(0),
  `DELETED_ROWS` varbinary(0),
  `UPDATE_COUNT` varbinary(0),
  `FREE_EXTENTS` bigint,
  `TOTAL_EXTENTS` bigint,
  `EXTENT_SIZE` bigint,
  `INITIAL_SIZE` bigint,
  `MAXIMUM_SIZE` bigint,
  `AUTOEXTEND_SIZE` bigint,
  `CREATION_TIME` varbinary(0),
  `LAST_UPDATE_TIME` varbinary(0),
  `LAST_ACCESS_TIME` varbinary(0),
  `RECOVER_TIME` varbinary(0),
  `TRANSACTION_COUNTER` varbinary(0),
  `VERSION` bigint,
  `ROW_FORMAT` varchar(256),
  `TABLE_ROWS` varbinary(0),
  `AVG_ROW_LENGTH` varbinary(0),
  `DATA_LENGTH` varbinary(0),
  `MAX_DATA_LENGTH` varbinary(0),
  `INDEX_LENGTH` varbinary(0),
  `DATA_FREE` bigint,
  `CREATE_TIME` varbinary(0),
  `UPDATE_TIME` varbinary(0),
  `CHECK_TIME` varbinary(0),
  `CHECKSUM` varbinary(0),
  `STATUS` varchar(256),
  `EXTRA` varchar(256)
);

CREATE TABLE INNODB_BUFFER_POOL_STATS (
  `POOL_ID` bigint unsigned NOT NULL,
  `POOL_SIZE` bigint unsigned NOT NULL,
  `FREE_BUFFERS` bigint unsigned NOT NULL,
  `DATABASE_PAGES` bigint unsigned NOT NULL,
  `OLD_DATABASE_PAGES` bigint unsigned NOT NULL,
  `MODIFIED_DATABASE_PAGES` bigint unsigned NOT NULL,
  `PENDING_DECOMPRESS` bigint unsigned NOT NULL,
  `PENDING_READS` bigint unsigned NOT NULL,
  `PENDING_FLUSH_LRU` bigint unsigned NOT NULL,
  `PENDING_FLUSH_LIST` bigint unsigned NOT NULL,
  `PAGES_MADE_YOUNG` bigint unsigned NOT NULL,
  `PAGES_NOT_MADE_YOUNG` bigint unsigned NOT NULL,
  `PAGES_MADE_YOUNG_RATE` float(12,0) NOT NULL,
  `PAGES_MADE_NOT_YOUNG_RATE` float(12,0) NOT NULL,
  `NUMBER_PAGES_READ` bigint unsigned NOT NULL,
  `NUMBER_PAGES_CREATED` bigint unsigned NOT NULL,
  `NUMBER_PAGES_WRITTEN` bigint unsigned NOT NULL,
  `PAGES_READ_RATE` float(12,0) NOT NULL,
  `PAGES_CREATE_RATE` float(12,0) NOT NULL,
  `PAGES_WRITTEN_RATE` float(12,0) NOT NULL,
  `NUMBER_PAGES_GET` bigint unsigned NOT NULL,
  `HIT_RATE` bigint unsigned NOT NULL,
  `YOUNG_MAKE_PER_THOUSAND_GETS` bigint unsigned NOT NULL,
  `NOT_YOUNG_MAKE_PER_THOUSAND_GETS` bigint unsigned NOT NULL,
  `NUMBER_PAGES_READ_AHEAD` bigint unsigned NOT NULL,
  `NUMBER_READ_AHEAD_EVICTED` bigint unsigned NOT NULL,
  `READ_AHEAD_RATE` float(12,0) NOT NULL,
  `READ_AHEAD_EVICTED_RATE` float(12,0) NOT NULL,
  `LRU_IO_TOTAL` bigint unsigned NOT NULL,
  `LRU_IO_CURRENT` bigint unsigned NOT NULL,
  `UNCOMPRESS_TOTAL` bigint unsigned NOT NULL,
  `UNCOMPRESS_CURRENT` bigint unsigned NOT NULL
);

CREATE TABLE INNODB_CMP (
  `page_size` int NOT NULL,
  `compress_ops` int NOT NULL,
  `compress_ops_ok` int NOT NULL,
  `compress_time` int NOT NULL,
  `uncompress_ops` int NOT NULL,
  `uncompress_time` int NOT NULL
);

CREATE TABLE INNODB_CMPMEM (
  `page_size` int NOT NULL,
  `buffer_pool_instance` int NOT NULL,
  `pages_used` int NOT NULL,
  `pages_free` int NOT NULL,
  `relocation_ops` bigint NOT NULL,
  `relocation_time` int NOT NULL
);

CREATE TABLE INNODB_CMPMEM_RESET (
  `page_size` int NOT NULL,
  `buffer_pool_instance` int NOT NULL,
  `pages_used` int NOT NULL,
  `pages_free` int NOT NULL,
  `relocation_ops` bigint NOT NULL,
  `relocation_time` int NOT NULL
);

CREATE TABLE INNODB_CMP_PER_INDEX (
  `database_name` varchar(192) NOT NULL DEFAULT '',
  `table_name` varchar(192) NOT NULL DEFAULT '',
  `index_name` varchar(192) NOT NULL DEFAULT '',
  `compress_ops` int NOT NULL,
  `compress_ops_ok` int NOT NULL,
  `compress_time` int NOT NULL,
  `uncompress_ops` int NOT NULL,
  `uncompress_time` int NOT NULL
);

CREATE TABLE INNODB_CMP_PER_INDEX_RESET (
  `database_name` varchar(192) NOT NULL DEFAULT '',
  `table_name` varchar(192) NOT NULL DEFAULT '',
  `index_name` varchar(192) NOT NULL DEFAULT '',
  `compress_ops` int NOT NULL,
  `compress_ops_ok` int NOT NULL,
  `compress_time` int NOT NULL,
  `uncompress_ops` int NOT NULL,
  `uncompress_time` int NOT NULL
);

CREATE TABLE INNODB_CMP_RESET (
  `page_size` int NOT NULL,
  `compress_ops` int NOT NULL,
  `compress_ops_ok` int NOT NULL,
  `compress_time` int NOT NULL,
  `uncompress_ops` int NOT NULL,
  `uncompress_time` int NOT NULL
);

CREATE TABLE INNODB_DATAFILES (
  `SPACE` varbinary(256),
  `PATH` varchar(512) COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE INNODB_FIELDS (
  `INDEX_ID` varbinary(256),
  `NAME` varchar(64) NOT NULL,
  `POS` bigint unsigned NOT NULL DEFAULT '0'
);

CREATE TABLE INNODB_FOREIGN (
  `ID` varchar(129) COLLATE utf8mb3_bin,
  `FOR_NAME` varchar(129) COLLATE utf8mb3_bin,
  `REF_NAME` varchar(129) COLLATE utf8mb3_bin,
  `N_COLS` bigint NOT NULL DEFAULT '0',
  `TYPE` bigint unsigned NOT NULL DEFAULT '0'
);

CREATE TABLE INNODB_FOREIGN_COLS (
  `ID` varchar(129) COLLATE utf8mb3_bin,
  `FOR_COL_NAME` varchar(64) NOT NULL,
  `REF_COL_NAME` varchar(64) NOT NULL,
  `POS` int unsigned NOT NULL
);

CREATE TABLE INNODB_FT_DEFAULT_STOPWORD (
  `value` varchar(18) NOT NULL DEFAULT ''
);

CREATE TABLE INNODB_INDEXES (
  `INDEX_ID` bigint unsigned NOT NULL,
  `NAME` varchar(193) NOT NULL DEFAULT '',
  `TABLE_ID` bigint unsigned NOT NULL,
  `TYPE` int NOT NULL,
  `N_FIELDS` int NOT NULL,
  `PAGE_NO` int NOT NULL,
  `SPACE` int NOT NULL,
  `MERGE_THRESHOLD` int NOT NULL
);

CREATE TABLE INNODB_METRICS (
  `NAME` varchar(193) NOT NULL DEFAULT '',
  `SUBSYSTEM` varchar(193) NOT NULL DEFAULT '',
  `COUNT` bigint NOT NULL,
  `MAX_COUNT` bigint,
  `MIN_COUNT` bigint,
  `AVG_COUNT` float(12,0),
  `COUNT_RESET` bigint NOT NULL,
  `MAX_COUNT_RESET` bigint,
  `MIN_COUNT_RESET` bigint,
  `AVG_COUNT_RESET` float(12,0),
  `TIME_ENABLED` datetime,
  `TIME_DISABLED` datetime,
  `TIME_ELAPSED` bigint,
  `TIME_RESET` datetime,
  `STATUS` varchar(193) NOT NULL DEFAULT '',
  `TYPE` varchar(193) NOT NULL DEFAULT '',
  `COMMENT` varchar(193) NOT NULL DEFAULT ''
);

CREATE TABLE INNODB_TABLES (
  `TABLE_ID` bigint unsigned NOT NULL,
  `NAME` varchar(655) NOT NULL DEFAULT '',
  `FLAG` int NOT NULL,
  `N_COLS` int NOT NULL,
  `SPACE` bigint NOT NULL,
  `ROW_FORMAT` varchar(12) DEFAULT '',
  `ZIP_PAGE_SIZE` int unsigned NOT NULL,
  `SPACE_TYPE` varchar(10) DEFAULT '',
  `INSTANT_COLS` int NOT NULL,
  `TOTAL_ROW_VERSIONS` int NOT NULL
);

CREATE TABLE INNODB_TABLESPACES (
  `SPACE` int unsigned NOT NULL,
  `NAME` varchar(655) NOT NULL DEFAULT '',
  `FLAG` int unsigned NOT NULL,
  `ROW_FORMAT` varchar(22),
  `PAGE_SIZE` int unsigned NOT NULL,
  `ZIP_PAGE_SIZE` int unsigned NOT NULL,
  `SPACE_TYPE` varchar(10),
  `FS_BLOCK_SIZE` int unsigned NOT NULL,
  `FILE_SIZE` bigint unsigned NOT NULL,
  `ALLOCATED_SIZE` bigint unsigned NOT NULL,
  `AUTOEXTEND_SIZE` bigint unsigned NOT NULL,
  `SERVER_VERSION` varchar(10),
  `SPACE_VERSION` int unsigned NOT NULL,
  `ENCRYPTION` varchar(1),
  `STATE` varchar(10)
);

CREATE TABLE INNODB_TABLESPACES_BRIEF (
  `SPACE` varbinary(256),
  `NAME` varchar(268) COLLATE utf8mb3_bin NOT NULL,
  `PATH` varchar(512) COLLATE utf8mb3_bin NOT NULL,
  `FLAG` varbinary(256),
  `SPACE_TYPE` varchar(7) NOT NULL DEFAULT ''
);

CREATE TABLE INNODB_TABLESTATS (
  `TABLE_ID` bigint unsigned NOT NULL,
  `NAME` varchar(193) NOT NULL DEFAULT '',
  `STATS_INITIALIZED` varchar(193) NOT NULL DEFAULT '',
  `NUM_ROWS` bigint unsigned NOT NULL,
  `CLUST_INDEX_SIZE` bigint unsigned NOT NULL,
  `OTHER_INDEX_SIZE` bigint unsigned NOT NULL,
  `MODIFIED_COUNTER` bigint unsigned NOT NULL,
  `AUTOINC` bigint unsigned NOT NULL,
  `REF_COUNT` int NOT NULL
);

CREATE TABLE INNODB_TRX (
  `trx_id` bigint unsigned NOT NULL DEFAULT '0',
  `trx_state` varchar(13) NOT NULL DEFAULT '',
  `trx_started` datetime NOT NULL DEFAULT '0000-00-00 00:00:00',
  `trx_requested_lock_id` varchar(126),
  `trx_wait_started` datetime,
  `trx_weight` bigint unsigned NOT NULL DEFAULT '0',
  `trx_mysql_thread_id` bigint unsigned NOT NULL DEFAULT '0',
  `trx_query` varchar(1024),
  `trx_operation_state` varchar(64),
  `trx_tables_in_use` bigint unsigned NOT NULL DEFAULT '0',
  `trx_tables_locked` bigint unsigned NOT NULL DEFAULT '0',
  `trx_lock_structs` bigint unsigned NOT NULL DEFAULT '0',
  `trx_lock_memory_bytes` bigint unsigned NOT NULL DEFAULT '0',
  `trx_rows_locked` bigint unsigned NOT NULL DEFAULT '0',
  `trx_rows_modified` bigint unsigned NOT NULL DEFAULT '0',
  `trx_concurrency_tickets` bigint unsigned NOT NULL DEFAULT '0',
  `trx_isolation_level` varchar(16) NOT NULL DEFAULT '',
  `trx_unique_checks` int NOT NULL DEFAULT '0',
  `trx_foreign_key_checks` int NOT NULL DEFAULT '0',
  `trx_last_foreign_key_error` varchar(256),
  `trx_adaptive_hash_latched` int NOT NULL DEFAULT '0',
  `trx_adaptive_hash_timeout` bigint unsigned NOT NULL DEFAULT '0',
  `trx_is_read_only` int NOT NULL DEFAULT '0',
  `trx_autocommit_non_locking` int NOT NULL DEFAULT '0',
  `trx_schedule_weight` bigint unsigned
);

CREATE TABLE INNODB_VIRTUAL (
  `TABLE_ID` bigint unsigned NOT NULL,
  `POS` int unsigned NOT NULL,
  `BASE_POS` int unsigned NOT NULL
);

CREATE TABLE KEYWORDS (
  `WORD` varchar(128) COLLATE utf8mb4_0900_ai_ci,
  `RESERVED` int
);

CREATE TABLE KEY_COLUMN_USAGE (
  `CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_NAME` varchar(64),
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_NAME` varchar(64),
  `ORDINAL_POSITION` int unsigned NOT NULL DEFAULT '0',
  `POSITION_IN_UNIQUE_CONSTRAINT` int unsigned,
  `REFERENCED_TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin,
  `REFERENCED_TABLE_NAME` varchar(64) COLLATE utf8mb3_bin,
  `REFERENCED_COLUMN_NAME` varchar(64)
);

CREATE TABLE OPTIMIZER_TRACE (
  `QUERY` longtext NOT NULL,
  `TRACE` longtext NOT NULL,
  `MISSING_BYTES_BEYOND_MAX_MEM_SIZE` int NOT NULL,
  `INSUFFICIENT_PRIVILEGES` tinyint(1) NOT NULL
);

CREATE TABLE PARAMETERS (
  `SPECIFIC_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SPECIFIC_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SPECIFIC_NAME` varchar(64) NOT NULL,
  `ORDINAL_POSITION` bigint unsigned NOT NULL DEFAULT '0',
  `PARAMETER_MODE` varchar(5) COLLATE utf8mb3_bin,
  `PARAMETER_NAME` varchar(64),
  `DATA_TYPE` longtext COLLATE utf8mb3_bin,
  `CHARACTER_MAXIMUM_LENGTH` bigint,
  `CHARACTER_OCTET_LENGTH` bigint,
  `NUMERIC_PRECISION` int unsigned,
  `NUMERIC_SCALE` bigint,
  `DATETIME_PRECISION` int unsigned,
  `CHARACTER_SET_NAME` varchar(64),
  `COLLATION_NAME` varchar(64),
  `DTD_IDENTIFIER` mediumtext COLLATE utf8mb3_bin NOT NULL,
  `ROUTINE_TYPE` enum('FUNCTION','PROCEDURE','LIBRARY') COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE PARTITIONS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `PARTITION_NAME` varchar(64),
  `SUBPARTITION_NAME` varchar(64),
  `PARTITION_ORDINAL_POSITION` int unsigned,
  `SUBPARTITION_ORDINAL_POSITION` int unsigned,
  `SECONDARY_LOAD` varchar(1) COLLATE utf8mb3_bin,
  `PARTITION_METHOD` varchar(13),
  `SUBPARTITION_METHOD` varchar(13),
  `PARTITION_EXPRESSION` varchar(2048) COLLATE utf8mb3_bin,
  `SUBPARTITION_EXPRESSION` varchar(2048) COLLATE utf8mb3_bin,
  `PARTITION_DESCRIPTION` text COLLATE utf8mb3_bin,
  `TABLE_ROWS` bigint unsigned,
  `AVG_ROW_LENGTH` bigint unsigned,
  `DATA_LENGTH` bigint unsigned,
  `MAX_DATA_LENGTH` bigint unsigned,
  `INDEX_LENGTH` bigint unsigned,
  `DATA_FREE` bigint unsigned,
  `CREATE_TIME` timestamp NOT NULL,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `CHECKSUM` bigint,
  `PARTITION_COMMENT` text COLLATE utf8mb3_bin NOT NULL,
  `NODEGROUP` varchar(256),
  `TABLESPACE_NAME` varchar(268) COLLATE utf8mb3_bin
);

CREATE TABLE PLUGINS (
  `PLUGIN_NAME` varchar(64) NOT NULL DEFAULT '',
  `PLUGIN_VERSION` varchar(20) NOT NULL DEFAULT '',
  `PLUGIN_STATUS` varchar(10) NOT NULL DEFAULT '',
  `PLUGIN_TYPE` varchar(80) NOT NULL DEFAULT '',
  `PLUGIN_TYPE_VERSION` varchar(20) NOT NULL DEFAULT '',
  `PLUGIN_LIBRARY` varchar(64) DEFAULT '',
  `PLUGIN_LIBRARY_VERSION` varchar(20) DEFAULT '',
  `PLUGIN_AUTHOR` varchar(64) DEFAULT '',
  `PLUGIN_DESCRIPTION` longtext,
  `PLUGIN_LICENSE` varchar(80) DEFAULT '',
  `LOAD_OPTION` varchar(64) NOT NULL DEFAULT ''
);

CREATE TABLE PROCESSLIST (
  `ID` bigint unsigned NOT NULL,
  `USER` varchar(32) NOT NULL DEFAULT '',
  `HOST` varchar(261) NOT NULL DEFAULT '',
  `DB` varchar(64) DEFAULT '',
  `COMMAND` varchar(16) NOT NULL DEFAULT '',
  `TIME` int NOT NULL,
  `STATE` varchar(64) DEFAULT '',
  `INFO` longtext
);

CREATE TABLE PROFILING (
  `QUERY_ID` int NOT NULL,
  `SEQ` int NOT NULL,
  `STATE` varchar(30) NOT NULL DEFAULT '',
  `DURATION` decimal(9,6) NOT NULL,
  `CPU_USER` decimal(9,6),
  `CPU_SYSTEM` decimal(9,6),
  `CONTEXT_VOLUNTARY` int,
  `CONTEXT_INVOLUNTARY` int,
  `BLOCK_OPS_IN` int,
  `BLOCK_OPS_OUT` int,
  `MESSAGES_SENT` int,
  `MESSAGES_RECEIVED` int,
  `PAGE_FAULTS_MAJOR` int,
  `PAGE_FAULTS_MINOR` int,
  `SWAPS` int,
  `SOURCE_FUNCTION` varchar(30) DEFAULT '',
  `SOURCE_FILE` varchar(20) DEFAULT '',
  `SOURCE_LINE` int
);

CREATE TABLE REFERENTIAL_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_NAME` varchar(64),
  `UNIQUE_CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `UNIQUE_CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `UNIQUE_CONSTRAINT_NAME` varchar(64),
  `MATCH_OPTION` enum('NONE','PARTIAL','FULL') COLLATE utf8mb3_bin NOT NULL,
  `UPDATE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') COLLATE utf8mb3_bin NOT NULL,
  `DELETE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `REFERENCED_TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE ROLE_COLUMN_GRANTS (
  `GRANTOR` varchar(97),
  `GRANTOR_HOST` varchar(256),
  `GRANTEE` char(32) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `GRANTEE_HOST` char(255) COLLATE ascii_general_ci NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(3) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `TABLE_NAME` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `COLUMN_NAME` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` set('Select','Insert','Update','References') NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE ROLE_ROUTINE_GRANTS (
  `GRANTOR` varchar(97),
  `GRANTOR_HOST` varchar(256),
  `GRANTEE` char(32) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `GRANTEE_HOST` char(255) COLLATE ascii_general_ci NOT NULL DEFAULT '',
  `SPECIFIC_CATALOG` varchar(3) NOT NULL DEFAULT '',
  `SPECIFIC_SCHEMA` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `SPECIFIC_NAME` char(64) NOT NULL DEFAULT '',
  `ROUTINE_CATALOG` varchar(3) NOT NULL DEFAULT '',
  `ROUTINE_SCHEMA` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `ROUTINE_NAME` char(64) NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` set('Execute','Alter Routine','Grant') NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE ROLE_TABLE_GRANTS (
  `GRANTOR` varchar(97),
  `GRANTOR_HOST` varchar(256),
  `GRANTEE` char(32) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `GRANTEE_HOST` char(255) COLLATE ascii_general_ci NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(3) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `TABLE_NAME` char(64) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` set('Select','Insert','Update','Delete','Create','Drop','Grant','References','Index','Alter','Create View','Show view','Trigger') NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE ROUTINES (
  `SPECIFIC_NAME` varchar(64) NOT NULL,
  `ROUTINE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `ROUTINE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `ROUTINE_NAME` varchar(64) NOT NULL,
  `ROUTINE_TYPE` enum('FUNCTION','PROCEDURE','LIBRARY') COLLATE utf8mb3_bin NOT NULL,
  `DATA_TYPE` longtext COLLATE utf8mb3_bin,
  `CHARACTER_MAXIMUM_LENGTH` bigint,
  `CHARACTER_OCTET_LENGTH` bigint,
  `NUMERIC_PRECISION` int unsigned,
  `NUMERIC_SCALE` int unsigned,
  `DATETIME_PRECISION` int unsigned,
  `CHARACTER_SET_NAME` varchar(64),
  `COLLATION_NAME` varchar(64),
  `DTD_IDENTIFIER` longtext COLLATE utf8mb3_bin,
  `ROUTINE_BODY` varchar(8) NOT NULL DEFAULT '',
  `ROUTINE_DEFINITION` longtext COLLATE utf8mb3_bin,
  `EXTERNAL_NAME` varbinary(0),
  `EXTERNAL_LANGUAGE` varchar(64) COLLATE utf8mb3_bin NOT NULL DEFAULT 'SQL',
  `PARAMETER_STYLE` varchar(3) NOT NULL DEFAULT '',
  `IS_DETERMINISTIC` varchar(3) NOT NULL DEFAULT '',
  `SQL_DATA_ACCESS` enum('CONTAINS SQL','NO SQL','READS SQL DATA','MODIFIES SQL DATA') COLLATE utf8mb3_bin NOT NULL,
  `SQL_PATH` varbinary(0),
  `SECURITY_TYPE` enum('DEFAULT','INVOKER','DEFINER') COLLATE utf8mb3_bin NOT NULL,
  `CREATED` timestamp NOT NULL,
  `LAST_ALTERED` timestamp NOT NULL,
  `SQL_MODE` set('REAL_AS_FLOAT','PIPES_AS_CONCAT','ANSI_QUOTES','IGNORE_SPACE','NOT_USED','ONLY_FULL_GROUP_BY','NO_UNSIGNED_SUBTRACTION','NO_DIR_IN_CREATE','NOT_USED_9','NOT_USED_10','NOT_USED_11','NOT_USED_12','NOT_USED_13','NOT_USED_14','NOT_USED_15','NOT_USED_16','NOT_USED_17','NOT_USED_18','ANSI','NO_AUTO_VALUE_ON_ZERO','NO_BACKSLASH_ESCAPES','STRICT_TRANS_TABLES','STRICT_ALL_TABLES','NO_ZERO_IN_DATE','NO_ZERO_DATE','ALLOW_INVALID_DATES','ERROR_FOR_DIVISION_BY_ZERO','TRADITIONAL','NOT_USED_29','HIGH_NOT_PRECEDENCE','NO_ENGINE_SUBSTITUTION','PAD_CHAR_TO_FULL_LENGTH','TIME_TRUNCATE_FRACTIONAL','INTERPRET_UTF8_AS_UTF8MB4') COLLATE utf8mb3_bin NOT NULL,
  `ROUTINE_COMMENT` text COLLATE utf8mb3_bin NOT NULL,
  `DEFINER` varchar(288) COLLATE utf8mb3_bin NOT NULL,
  `CHARACTER_SET_CLIENT` varchar(64) NOT NULL,
  `COLLATION_CONNECTION` varchar(64) NOT NULL,
  `DATABASE_COLLATION` varchar(64) NOT NULL
);

CREATE TABLE SCHEMATA (
  `CATALOG_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SCHEMA_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `DEFAULT_CHARACTER_SET_NAME` varchar(64) NOT NULL,
  `DEFAULT_COLLATION_NAME` varchar(64) NOT NULL,
  `SQL_PATH` varbinary(0),
  `DEFAULT_ENCRYPTION` enum('NO','YES') COLLATE utf8mb3_bin NOT NULL
);

CREATE TABLE SCHEMATA_EXTENSIONS (
  `CATALOG_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SCHEMA_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `OPTIONS` varchar(256)
);

CREATE TABLE SCHEMA_PRIVILEGES (
  `GRANTEE` varchar(292) NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(512) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` varchar(64) NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` varchar(64) NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE STATISTICS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `NON_UNIQUE` int NOT NULL DEFAULT '0',
  `INDEX_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `INDEX_NAME` varchar(64),
  `SEQ_IN_INDEX` int unsigned NOT NULL,
  `COLUMN_NAME` varchar(64),
  `COLLATION` varchar(1),
  `CARDINALITY` bigint,
  `SUB_PART` bigint,
  `PACKED` varbinary(0),
  `NULLABLE` varchar(3) NOT NULL DEFAULT '',
  `INDEX_TYPE` varchar(11) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `COMMENT` varchar(8) NOT NULL DEFAULT '',
  `INDEX_COMMENT` varchar(2048) COLLATE utf8mb3_bin NOT NULL,
  `IS_VISIBLE` varchar(3) NOT NULL DEFAULT '',
  `EXPRESSION` longtext COLLATE utf8mb3_bin
);

CREATE TABLE ST_GEOMETRY_COLUMNS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `COLUMN_NAME` varchar(64),
  `SRS_NAME` varchar(80),
  `SRS_ID` int unsigned,
  `GEOMETRY_TYPE_NAME` longtext COLLATE utf8mb3_bin
);

CREATE TABLE TABLES (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_TYPE` enum('BASE TABLE','VIEW','SYSTEM VIEW') COLLATE utf8mb3_bin NOT NULL,
  `ENGINE` varchar(64),
  `VERSION` int,
  `ROW_FORMAT` enum('Fixed','Dynamic','Compressed','Redundant','Compact','Paged') COLLATE utf8mb3_bin,
  `TABLE_ROWS` bigint unsigned,
  `AVG_ROW_LENGTH` bigint unsigned,
  `DATA_LENGTH` bigint unsigned,
  `MAX_DATA_LENGTH` bigint unsigned,
  `INDEX_LENGTH` bigint unsigned,
  `DATA_FREE` bigint unsigned,
  `AUTO_INCREMENT` bigint unsigned,
  `CREATE_TIME` timestamp NOT NULL,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `TABLE_COLLATION` varchar(64),
  `CHECKSUM` bigint,
  `CREATE_OPTIONS` varchar(256),
  `TABLE_COMMENT` text
);

CREATE TABLE TABLES_EXTENSIONS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin,
  `SECONDARY_ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin
);

CREATE TABLE TABLE_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_NAME` varchar(64),
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_TYPE` varchar(11) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `ENFORCED` varchar(3) COLLATE utf8mb3_bin NOT NULL DEFAULT ''
);

CREATE TABLE TABLE_CONSTRAINTS_EXTENSIONS (
  `CONSTRAINT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `CONSTRAINT_NAME` varchar(64) NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin,
  `SECONDARY_ENGINE_ATTRIBUTE` longtext COLLATE utf8mb4_bin
);

CREATE TABLE TABLE_PRIVILEGES (
  `GRANTEE` varchar(292) NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(512) NOT NULL DEFAULT '',
  `TABLE_SCHEMA` varchar(64) NOT NULL DEFAULT '',
  `TABLE_NAME` varchar(64) NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` varchar(64) NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE TRIGGERS (
  `TRIGGER_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TRIGGER_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TRIGGER_NAME` varchar(64) NOT NULL,
  `EVENT_MANIPULATION` enum('INSERT','UPDATE','DELETE') COLLATE utf8mb3_bin NOT NULL,
  `EVENT_OBJECT_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `EVENT_OBJECT_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `EVENT_OBJECT_TABLE` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `ACTION_ORDER` int unsigned NOT NULL,
  `ACTION_CONDITION` varbinary(0),
  `ACTION_STATEMENT` longtext COLLATE utf8mb3_bin NOT NULL,
  `ACTION_ORIENTATION` varchar(3) NOT NULL DEFAULT '',
  `ACTION_TIMING` enum('BEFORE','AFTER') COLLATE utf8mb3_bin NOT NULL,
  `ACTION_REFERENCE_OLD_TABLE` varbinary(0),
  `ACTION_REFERENCE_NEW_TABLE` varbinary(0),
  `ACTION_REFERENCE_OLD_ROW` varchar(3) NOT NULL DEFAULT '',
  `ACTION_REFERENCE_NEW_ROW` varchar(3) NOT NULL DEFAULT '',
  `CREATED` timestamp(2) NOT NULL,
  `SQL_MODE` set('REAL_AS_FLOAT','PIPES_AS_CONCAT','ANSI_QUOTES','IGNORE_SPACE','NOT_USED','ONLY_FULL_GROUP_BY','NO_UNSIGNED_SUBTRACTION','NO_DIR_IN_CREATE','NOT_USED_9','NOT_USED_10','NOT_USED_11','NOT_USED_12','NOT_USED_13','NOT_USED_14','NOT_USED_15','NOT_USED_16','NOT_USED_17','NOT_USED_18','ANSI','NO_AUTO_VALUE_ON_ZERO','NO_BACKSLASH_ESCAPES','STRICT_TRANS_TABLES','STRICT_ALL_TABLES','NO_ZERO_IN_DATE','NO_ZERO_DATE','ALLOW_INVALID_DATES','ERROR_FOR_DIVISION_BY_ZERO','TRADITIONAL','NOT_USED_29','HIGH_NOT_PRECEDENCE','NO_ENGINE_SUBSTITUTION','PAD_CHAR_TO_FULL_LENGTH','TIME_TRUNCATE_FRACTIONAL','INTERPRET_UTF8_AS_UTF8MB4') COLLATE utf8mb3_bin NOT NULL,
  `DEFINER` varchar(288) COLLATE utf8mb3_bin NOT NULL,
  `CHARACTER_SET_CLIENT` varchar(64) NOT NULL,
  `COLLATION_CONNECTION` varchar(64) NOT NULL,
  `DATABASE_COLLATION` varchar(64) NOT NULL
);

CREATE TABLE USER_ATTRIBUTES (
  `USER` char(32) COLLATE utf8mb3_bin NOT NULL DEFAULT '',
  `HOST` char(255) COLLATE ascii_general_ci NOT NULL DEFAULT '',
  `ATTRIBUTE` longtext COLLATE utf8mb4_bin
);

CREATE TABLE USER_PRIVILEGES (
  `GRANTEE` varchar(292) NOT NULL DEFAULT '',
  `TABLE_CATALOG` varchar(512) NOT NULL DEFAULT '',
  `PRIVILEGE_TYPE` varchar(64) NOT NULL DEFAULT '',
  `IS_GRANTABLE` varchar(3) NOT NULL DEFAULT ''
);

CREATE TABLE VIEWS (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `VIEW_DEFINITION` longtext COLLATE utf8mb3_bin,
  `CHECK_OPTION` enum('NONE','LOCAL','CASCADED') COLLATE utf8mb3_bin,
  `IS_UPDATABLE` enum('NO','YES') COLLATE utf8mb3_bin,
  `DEFINER` varchar(288) COLLATE utf8mb3_bin,
  `SECURITY_TYPE` varchar(7) COLLATE utf8mb3_bin,
  `CHARACTER_SET_CLIENT` varchar(64) NOT NULL,
  `COLLATION_CONNECTION` varchar(64) NOT NULL
);

CREATE TABLE VIEW_ROUTINE_USAGE (
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SPECIFIC_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SPECIFIC_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `SPECIFIC_NAME` varchar(64) NOT NULL
);

CREATE TABLE VIEW_TABLE_USAGE (
  `VIEW_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `VIEW_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `VIEW_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_CATALOG` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_SCHEMA` varchar(64) COLLATE utf8mb3_bin NOT NULL,
  `TABLE_NAME` varchar(64) COLLATE utf8mb3_bin NOT NULL
);
