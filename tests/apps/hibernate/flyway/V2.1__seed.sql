INSERT INTO account (name, email, created) SELECT CONCAT('${prefix} ', name), CONCAT('copy-', email), created FROM account ORDER BY id;
