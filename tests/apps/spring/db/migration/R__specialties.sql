INSERT INTO specialties (name) VALUES ('radiology'), ('surgery'), ('dentistry') ON DUPLICATE KEY UPDATE name = VALUES(name);
