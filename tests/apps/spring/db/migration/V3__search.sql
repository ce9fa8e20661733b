ALTER TABLE visits ADD FULLTEXT KEY words (description), ADD vet_id BIGINT, ADD FOREIGN KEY (vet_id) REFERENCES vets (id);
ALTER TABLE owners MODIFY city VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_cs,
  ADD full_name VARCHAR(61) AS (CONCAT(first_name, ' ', last_name)) STORED;
CREATE INDEX full_name ON owners (full_name);
CREATE VIEW busy_owners AS
  SELECT o.id, o.full_name, COUNT(*) AS pets FROM owners o JOIN pets p ON p.owner_id = o.id GROUP BY o.id HAVING COUNT(*) > 1;
