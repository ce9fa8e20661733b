-- Keys on the referencing columns of TPC-H, which `--keys all` adds.

ALTER TABLE nation ADD KEY n_region (n_regionkey);
ALTER TABLE supplier ADD KEY s_nation (s_nationkey);
ALTER TABLE partsupp ADD KEY ps_supp (ps_suppkey);
ALTER TABLE customer ADD KEY c_nation (c_nationkey);
ALTER TABLE orders ADD KEY o_cust (o_custkey);
ALTER TABLE lineitem ADD KEY l_part_supp (l_partkey, l_suppkey), ADD KEY l_supp (l_suppkey);
