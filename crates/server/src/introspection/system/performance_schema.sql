-- The tables of performance_schema: names, columns and types are MySQL's (manual, "Performance Schema Table Descriptions").
-- The default collation is utf8mb4_0900_ai_ci; JSON columns are LONGTEXT. `system` reads this text once; `system::rows` makes the rows.

CREATE TABLE accounts (
  `USER` char(32) COLLATE utf8mb4_bin,
  `HOST` char(255) COLLATE ascii_general_ci,
  `CURRENT_CONNECTIONS` bigint NOT NULL,
  `TOTAL_CONNECTIONS` bigint NOT NULL,
  `MAX_SESSION_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_SESSION_TOTAL_MEMORY` bigint unsigned NOT NULL
);

CREATE TABLE data_lock_waits (
  `ENGINE` varchar(32) NOT NULL,
  `REQUESTING_ENGINE_LOCK_ID` varchar(128) NOT NULL,
  `REQUESTING_ENGINE_TRANSACTION_ID` bigint unsigned,
  `REQUESTING_THREAD_ID` bigint unsigned,
  `REQUESTING_EVENT_ID` bigint unsigned,
  `REQUESTING_OBJECT_INSTANCE_BEGIN` bigint unsigned NOT NULL,
  `BLOCKING_ENGINE_LOCK_ID` varchar(128) NOT NULL,
  `BLOCKING_ENGINE_TRANSACTION_ID` bigint unsigned,
  `BLOCKING_THREAD_ID` bigint unsigned,
  `BLOCKING_EVENT_ID` bigint unsigned,
  `BLOCKING_OBJECT_INSTANCE_BEGIN` bigint unsigned NOT NULL
);

CREATE TABLE data_locks (
  `ENGINE` varchar(32) NOT NULL,
  `ENGINE_LOCK_ID` varchar(128) NOT NULL,
  `ENGINE_TRANSACTION_ID` bigint unsigned,
  `THREAD_ID` bigint unsigned,
  `EVENT_ID` bigint unsigned,
  `OBJECT_SCHEMA` varchar(64),
  `OBJECT_NAME` varchar(64),
  `PARTITION_NAME` varchar(64),
  `SUBPARTITION_NAME` varchar(64),
  `INDEX_NAME` varchar(64),
  `OBJECT_INSTANCE_BEGIN` bigint unsigned NOT NULL,
  `LOCK_TYPE` varchar(32) NOT NULL,
  `LOCK_MODE` varchar(32) NOT NULL,
  `LOCK_STATUS` varchar(32) NOT NULL,
  `LOCK_DATA` varchar(8192)
);

CREATE TABLE events_statements_current (
  `THREAD_ID` bigint unsigned NOT NULL,
  `EVENT_ID` bigint unsigned NOT NULL,
  `END_EVENT_ID` bigint unsigned,
  `EVENT_NAME` varchar(128) NOT NULL,
  `SOURCE` varchar(64),
  `TIMER_START` bigint unsigned,
  `TIMER_END` bigint unsigned,
  `TIMER_WAIT` bigint unsigned,
  `LOCK_TIME` bigint unsigned NOT NULL,
  `SQL_TEXT` longtext,
  `DIGEST` varchar(64),
  `DIGEST_TEXT` longtext,
  `CURRENT_SCHEMA` varchar(64),
  `OBJECT_TYPE` varchar(64),
  `OBJECT_SCHEMA` varchar(64),
  `OBJECT_NAME` varchar(64),
  `OBJECT_INSTANCE_BEGIN` bigint unsigned,
  `MYSQL_ERRNO` int,
  `RETURNED_SQLSTATE` varchar(5),
  `MESSAGE_TEXT` varchar(128),
  `ERRORS` bigint unsigned NOT NULL,
  `WARNINGS` bigint unsigned NOT NULL,
  `ROWS_AFFECTED` bigint unsigned NOT NULL,
  `ROWS_SENT` bigint unsigned NOT NULL,
  `ROWS_EXAMINED` bigint unsigned NOT NULL,
  `CREATED_TMP_DISK_TABLES` bigint unsigned NOT NULL,
  `CREATED_TMP_TABLES` bigint unsigned NOT NULL,
  `SELECT_FULL_JOIN` bigint unsigned NOT NULL,
  `SELECT_FULL_RANGE_JOIN` bigint unsigned NOT NULL,
  `SELECT_RANGE` bigint unsigned NOT NULL,
  `SELECT_RANGE_CHECK` bigint unsigned NOT NULL,
  `SELECT_SCAN` bigint unsigned NOT NULL,
  `SORT_MERGE_PASSES` bigint unsigned NOT NULL,
  `SORT_RANGE` bigint unsigned NOT NULL,
  `SORT_ROWS` bigint unsigned NOT NULL,
  `SORT_SCAN` bigint unsigned NOT NULL,
  `NO_INDEX_USED` bigint unsigned NOT NULL,
  `NO_GOOD_INDEX_USED` bigint unsigned NOT NULL,
  `NESTING_EVENT_ID` bigint unsigned,
  `NESTING_EVENT_TYPE` enum('TRANSACTION','STATEMENT','STAGE','WAIT'),
  `NESTING_EVENT_LEVEL` int,
  `STATEMENT_ID` bigint unsigned,
  `CPU_TIME` bigint unsigned NOT NULL,
  `MAX_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_TOTAL_MEMORY` bigint unsigned NOT NULL,
  `EXECUTION_ENGINE` enum('PRIMARY','SECONDARY')
);

CREATE TABLE events_statements_histogram_by_digest (
  `SCHEMA_NAME` varchar(64),
  `DIGEST` varchar(64),
  `BUCKET_NUMBER` int unsigned NOT NULL,
  `BUCKET_TIMER_LOW` bigint unsigned NOT NULL,
  `BUCKET_TIMER_HIGH` bigint unsigned NOT NULL,
  `COUNT_BUCKET` bigint unsigned NOT NULL,
  `COUNT_BUCKET_AND_LOWER` bigint unsigned NOT NULL,
  `BUCKET_QUANTILE` double(7,6) NOT NULL
);

CREATE TABLE events_statements_summary_by_digest (
  `SCHEMA_NAME` varchar(64),
  `DIGEST` varchar(64),
  `DIGEST_TEXT` longtext,
  `COUNT_STAR` bigint unsigned NOT NULL,
  `SUM_TIMER_WAIT` bigint unsigned NOT NULL,
  `MIN_TIMER_WAIT` bigint unsigned NOT NULL,
  `AVG_TIMER_WAIT` bigint unsigned NOT NULL,
  `MAX_TIMER_WAIT` bigint unsigned NOT NULL,
  `SUM_LOCK_TIME` bigint unsigned NOT NULL,
  `SUM_ERRORS` bigint unsigned NOT NULL,
  `SUM_WARNINGS` bigint unsigned NOT NULL,
  `SUM_ROWS_AFFECTED` bigint unsigned NOT NULL,
  `SUM_ROWS_SENT` bigint unsigned NOT NULL,
  `SUM_ROWS_EXAMINED` bigint unsigned NOT NULL,
  `SUM_CREATED_TMP_DISK_TABLES` bigint unsigned NOT NULL,
  `SUM_CREATED_TMP_TABLES` bigint unsigned NOT NULL,
  `SUM_SELECT_FULL_JOIN` bigint unsigned NOT NULL,
  `SUM_SELECT_FULL_RANGE_JOIN` bigint unsigned NOT NULL,
  `SUM_SELECT_RANGE` bigint unsigned NOT NULL,
  `SUM_SELECT_RANGE_CHECK` bigint unsigned NOT NULL,
  `SUM_SELECT_SCAN` bigint unsigned NOT NULL,
  `SUM_SORT_MERGE_PASSES` bigint unsigned NOT NULL,
  `SUM_SORT_RANGE` bigint unsigned NOT NULL,
  `SUM_SORT_ROWS` bigint unsigned NOT NULL,
  `SUM_SORT_SCAN` bigint unsigned NOT NULL,
  `SUM_NO_INDEX_USED` bigint unsigned NOT NULL,
  `SUM_NO_GOOD_INDEX_USED` bigint unsigned NOT NULL,
  `SUM_CPU_TIME` bigint unsigned NOT NULL,
  `MAX_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_TOTAL_MEMORY` bigint unsigned NOT NULL,
  `COUNT_SECONDARY` bigint unsigned NOT NULL,
  `FIRST_SEEN` timestamp(6) NOT NULL,
  `LAST_SEEN` timestamp(6) NOT NULL,
  `QUANTILE_95` bigint unsigned NOT NULL,
  `QUANTILE_99` bigint unsigned NOT NULL,
  `QUANTILE_999` bigint unsigned NOT NULL,
  `QUERY_SAMPLE_TEXT` longtext,
  `QUERY_SAMPLE_SEEN` timestamp(6) NOT NULL,
  `QUERY_SAMPLE_TIMER_WAIT` bigint unsigned NOT NULL
);

CREATE TABLE global_status (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024),
  PRIMARY KEY (VARIABLE_NAME)
);

CREATE TABLE global_variables (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024),
  PRIMARY KEY (VARIABLE_NAME)
);

CREATE TABLE hosts (
  `HOST` char(255) COLLATE ascii_general_ci,
  `CURRENT_CONNECTIONS` bigint NOT NULL,
  `TOTAL_CONNECTIONS` bigint NOT NULL,
  `MAX_SESSION_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_SESSION_TOTAL_MEMORY` bigint unsigned NOT NULL
);

CREATE TABLE metadata_locks (
  `OBJECT_TYPE` varchar(64) NOT NULL,
  `OBJECT_SCHEMA` varchar(64),
  `OBJECT_NAME` varchar(64),
  `COLUMN_NAME` varchar(64),
  `OBJECT_INSTANCE_BEGIN` bigint unsigned NOT NULL,
  `LOCK_TYPE` varchar(32) NOT NULL,
  `LOCK_DURATION` varchar(32) NOT NULL,
  `LOCK_STATUS` varchar(32) NOT NULL,
  `SOURCE` varchar(64),
  `OWNER_THREAD_ID` bigint unsigned,
  `OWNER_EVENT_ID` bigint unsigned
);

CREATE TABLE persisted_variables (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024),
  PRIMARY KEY (VARIABLE_NAME)
);

CREATE TABLE processlist (
  `ID` bigint unsigned NOT NULL,
  `USER` varchar(32),
  `HOST` varchar(261) COLLATE ascii_general_ci,
  `DB` varchar(64),
  `COMMAND` varchar(16),
  `TIME` bigint,
  `STATE` varchar(64),
  `INFO` longtext,
  `EXECUTION_ENGINE` enum('PRIMARY','SECONDARY'),
  PRIMARY KEY (ID)
);

CREATE TABLE session_account_connect_attrs (
  `PROCESSLIST_ID` bigint unsigned NOT NULL,
  `ATTR_NAME` varchar(32) COLLATE utf8mb4_bin NOT NULL,
  `ATTR_VALUE` varchar(1024) COLLATE utf8mb4_bin,
  `ORDINAL_POSITION` int
);

CREATE TABLE session_connect_attrs (
  `PROCESSLIST_ID` bigint unsigned NOT NULL,
  `ATTR_NAME` varchar(32) COLLATE utf8mb4_bin NOT NULL,
  `ATTR_VALUE` varchar(1024) COLLATE utf8mb4_bin,
  `ORDINAL_POSITION` int
);

CREATE TABLE session_status (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024),
  PRIMARY KEY (VARIABLE_NAME)
);

CREATE TABLE session_variables (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024),
  PRIMARY KEY (VARIABLE_NAME)
);

CREATE TABLE setup_actors (
  `HOST` char(255) COLLATE ascii_general_ci NOT NULL DEFAULT '%',
  `USER` char(32) COLLATE utf8mb4_bin NOT NULL DEFAULT '%',
  `ROLE` char(32) COLLATE utf8mb4_bin NOT NULL DEFAULT '%',
  `ENABLED` enum('YES','NO') NOT NULL DEFAULT 'YES',
  `HISTORY` enum('YES','NO') NOT NULL DEFAULT 'YES'
);

CREATE TABLE setup_consumers (
  `NAME` varchar(64) NOT NULL,
  `ENABLED` enum('YES','NO') NOT NULL
);

CREATE TABLE setup_instruments (
  `NAME` varchar(128) NOT NULL,
  `ENABLED` enum('YES','NO') NOT NULL,
  `TIMED` enum('YES','NO'),
  `PROPERTIES` set('singleton','progress','user','global_statistics','mutable','controlled_by_default') NOT NULL,
  `FLAGS` set('controlled'),
  `VOLATILITY` int NOT NULL,
  `DOCUMENTATION` longtext
);

CREATE TABLE setup_objects (
  `OBJECT_TYPE` enum('EVENT','FUNCTION','PROCEDURE','TABLE','TRIGGER') NOT NULL DEFAULT 'TABLE',
  `OBJECT_SCHEMA` varchar(64) DEFAULT '%',
  `OBJECT_NAME` varchar(64) NOT NULL DEFAULT '%',
  `ENABLED` enum('YES','NO') NOT NULL DEFAULT 'YES',
  `TIMED` enum('YES','NO') NOT NULL DEFAULT 'YES'
);

CREATE TABLE setup_threads (
  `NAME` varchar(128) NOT NULL,
  `ENABLED` enum('YES','NO') NOT NULL,
  `HISTORY` enum('YES','NO') NOT NULL,
  `PROPERTIES` set('singleton','user') NOT NULL,
  `VOLATILITY` int NOT NULL,
  `DOCUMENTATION` longtext
);

CREATE TABLE status_by_thread (
  `THREAD_ID` bigint unsigned NOT NULL,
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024)
);

CREATE TABLE table_handles (
  `OBJECT_TYPE` varchar(64) NOT NULL,
  `OBJECT_SCHEMA` varchar(64) NOT NULL,
  `OBJECT_NAME` varchar(64) NOT NULL,
  `OBJECT_INSTANCE_BEGIN` bigint unsigned NOT NULL,
  `OWNER_THREAD_ID` bigint unsigned,
  `OWNER_EVENT_ID` bigint unsigned,
  `INTERNAL_LOCK` varchar(64),
  `EXTERNAL_LOCK` varchar(64)
);

CREATE TABLE threads (
  `THREAD_ID` bigint unsigned NOT NULL,
  `NAME` varchar(128) NOT NULL,
  `TYPE` varchar(10) NOT NULL,
  `PROCESSLIST_ID` bigint unsigned,
  `PROCESSLIST_USER` varchar(32),
  `PROCESSLIST_HOST` varchar(255) COLLATE ascii_general_ci,
  `PROCESSLIST_DB` varchar(64),
  `PROCESSLIST_COMMAND` varchar(16),
  `PROCESSLIST_TIME` bigint,
  `PROCESSLIST_STATE` varchar(64),
  `PROCESSLIST_INFO` longtext,
  `PARENT_THREAD_ID` bigint unsigned,
  `ROLE` varchar(64),
  `INSTRUMENTED` enum('YES','NO') NOT NULL,
  `HISTORY` enum('YES','NO') NOT NULL,
  `CONNECTION_TYPE` varchar(16),
  `THREAD_OS_ID` bigint unsigned,
  `RESOURCE_GROUP` varchar(64),
  `EXECUTION_ENGINE` enum('PRIMARY','SECONDARY'),
  `CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `TOTAL_MEMORY` bigint unsigned NOT NULL,
  `MAX_TOTAL_MEMORY` bigint unsigned NOT NULL,
  `TELEMETRY_ACTIVE` enum('YES','NO') NOT NULL,
  PRIMARY KEY (THREAD_ID)
);

CREATE TABLE user_variables_by_thread (
  `THREAD_ID` bigint unsigned NOT NULL,
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` longblob
);

CREATE TABLE users (
  `USER` char(32) COLLATE utf8mb4_bin,
  `CURRENT_CONNECTIONS` bigint NOT NULL,
  `TOTAL_CONNECTIONS` bigint NOT NULL,
  `MAX_SESSION_CONTROLLED_MEMORY` bigint unsigned NOT NULL,
  `MAX_SESSION_TOTAL_MEMORY` bigint unsigned NOT NULL
);

CREATE TABLE variables_by_thread (
  `THREAD_ID` bigint unsigned NOT NULL,
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_VALUE` varchar(1024)
);

CREATE TABLE variables_info (
  `VARIABLE_NAME` varchar(64) NOT NULL,
  `VARIABLE_SOURCE` enum('COMPILED','GLOBAL','SERVER','EXPLICIT','EXTRA','USER','LOGIN','COMMAND_LINE','PERSISTED','DYNAMIC') DEFAULT 'COMPILED',
  `VARIABLE_PATH` varchar(1024),
  `MIN_VALUE` varchar(64),
  `MAX_VALUE` varchar(64),
  `SET_TIME` timestamp(6) NULL,
  `SET_USER` char(32) COLLATE utf8mb4_bin,
  `SET_HOST` char(255) COLLATE ascii_general_ci
);
