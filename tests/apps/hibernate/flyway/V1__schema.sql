-- Comments, several statements, and a delimiter in a text.
CREATE TABLE account (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(100) NOT NULL COMMENT 'with; a semicolon',
  email VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  created TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  settings JSON NOT NULL DEFAULT (JSON_OBJECT('theme', 'dark')),
  UNIQUE KEY uq_email (email),
  CONSTRAINT ck_name CHECK (CHAR_LENGTH(name) > 1)
);

/*!50110 ALTER TABLE account COMMENT = 'accounts' */;

CREATE TABLE entry (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  account_id BIGINT NOT NULL,
  amount DECIMAL(12, 2) NOT NULL,
  kind ENUM('credit', 'debit') NOT NULL DEFAULT 'credit',
  signed_amount DECIMAL(12, 2) AS (IF(kind = 'debit', -amount, amount)) STORED,
  CONSTRAINT fk_entry_account FOREIGN KEY (account_id) REFERENCES account (id) ON DELETE CASCADE
);
INSERT INTO account (name, email, created) VALUES ('Änne; Müller', 'aenne@example.com', '2024-01-02 03:04:05.678'), ('O''Hara \'s', 'ohara@example.com', '2024-01-02 03:04:05');
INSERT INTO entry (account_id, amount, kind) VALUES (1, 10.5, 'credit'), (1, 3.25, 'debit'), (2, 7, 'credit');
