CREATE OR REPLACE VIEW balance AS SELECT a.id, a.name, COALESCE(SUM(e.signed_amount), 0) AS total FROM account a LEFT JOIN ledger_entry e ON e.account_id = a.id GROUP BY a.id, a.name;
