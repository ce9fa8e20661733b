CREATE TABLE types (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  UNIQUE KEY type_name (name)
);

CREATE TABLE owners (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  first_name VARCHAR(30) NOT NULL,
  last_name VARCHAR(30) NOT NULL,
  city VARCHAR(80),
  telephone VARCHAR(20),
  balance DECIMAL(10, 2) NOT NULL DEFAULT 0,
  version INT NOT NULL DEFAULT 0,
  created_at DATETIME(6) NOT NULL,
  KEY last_name (last_name),
  UNIQUE KEY telephone (telephone),
  CONSTRAINT balance_is_bounded CHECK (balance > -1000)
);

CREATE TABLE pets (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(30) NOT NULL,
  birth_date DATE,
  type_id INT UNSIGNED NOT NULL,
  owner_id BIGINT NOT NULL,
  mood ENUM('CALM', 'NERVOUS', 'WILD') NOT NULL DEFAULT 'CALM',
  FOREIGN KEY (type_id) REFERENCES types (id),
  FOREIGN KEY (owner_id) REFERENCES owners (id) ON DELETE CASCADE
);

CREATE TABLE visits (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  pet_id BIGINT NOT NULL,
  visit_date DATE NOT NULL,
  description TEXT NOT NULL,
  details JSON,
  FOREIGN KEY (pet_id) REFERENCES pets (id) ON DELETE CASCADE
);

INSERT INTO types (name) VALUES ('cat'), ('dog'), ('lizard'), ('hamster');
