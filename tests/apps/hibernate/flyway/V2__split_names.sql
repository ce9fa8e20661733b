ALTER TABLE account ADD COLUMN first_name VARCHAR(50) AFTER name, ADD COLUMN last_name VARCHAR(50) AFTER first_name, ADD INDEX ix_last (last_name, first_name);
UPDATE account SET first_name = SUBSTRING_INDEX(name, ' ', 1), last_name = SUBSTRING_INDEX(name, ' ', -1);
SET @largest = (SELECT MAX(amount) FROM entry);
UPDATE entry SET amount = amount + 1 WHERE amount = @largest;
RENAME TABLE entry TO ledger_entry;
ALTER TABLE ledger_entry ADD COLUMN remark VARCHAR(20) INVISIBLE, RENAME COLUMN id TO entry_id;
ALTER TABLE ledger_entry RENAME COLUMN remark TO note, ALTER COLUMN kind DROP DEFAULT;
CREATE INDEX ix_amount ON ledger_entry (account_id, amount DESC);
