-- Scans and aggregates over lineitem beside the queries of TPC-H.

-- s1
SELECT COUNT(*) FROM lineitem WHERE l_shipdate >= '1994-01-01' AND l_shipdate < '1995-01-01';

-- s2
SELECT SUM(l_extendedprice * l_discount) FROM lineitem;

-- s3
SELECT l_shipmode, COUNT(*), SUM(l_quantity), MAX(l_shipdate) FROM lineitem GROUP BY l_shipmode;

-- s4
SELECT COUNT(*) FROM lineitem WHERE l_shipmode IN ('AIR', 'RAIL') OR l_comment LIKE 'the%';

-- s5
SELECT l_partkey, SUM(l_quantity) AS q FROM lineitem GROUP BY l_partkey ORDER BY q DESC LIMIT 5;
