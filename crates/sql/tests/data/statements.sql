select 1
select 1;
select
select 1,
select , 1
select 1 2
select 1 a
select 1 as a
select 1 as 'a b'
select 1 "a b"
select 1 as `a b`
select 1 as 2
select a.b.c.d
select a.b.c
select .a.b
select a.*
select a.b.*
select a.b.c.*
select *, 1
select 1, *
select * , *
select t.*, 1 from t
select distinct a from t
select all a from t
select distinct all a from t
select distinctrow a from t
select straight_join a from t
select sql_calc_found_rows a from t
select sql_no_cache sql_buffer_result high_priority a from t
select sql_cache a from t
select a from
select a from t where
select a from t where a
select a from t where a = 
select a from t where = 1
select a from t t2
select a from t as t2
select a from t 't2'
select a from t as "t2"
select a from t group by
select a from t group by a
select a from t group by a, b
select a from t group by a desc
select a from t group by a with rollup
select a from t group by a having a > 1
select a from t having a > 1 group by a
select a from t having a > 1
select a from t order by a
select a from t order by a asc, b desc
select a from t order by a b
select a from t order a
select a from t limit 1
select a from t limit 1, 2
select a from t limit 1 offset 2
select a from t limit -1
select a from t limit 1.5
select a from t limit 'a'
select a from t limit 1+1
select a from t limit @a
select a from t limit ?
select a from t limit ?, ?
select a from t limit 1, 2, 3
select a from t offset 1
select a from t limit 1 order by a
select a from t for update
select a from t for share
select a from t for update nowait
select a from t for update skip locked
select a from t for update of t nowait
select a from t for update of t for share of u skip locked
select a from t lock in share mode
select a from t for delete
select a from t for update wait 3
select a from t where b for update limit 1
select a into @x from t
select a, b into @x, @y from t where c
select a from t into @x
select a from t into @x for update
select a from t for update into @x
select a from t into outfile '/tmp/x'
select a into outfile '/tmp/x' fields terminated by ',' from t
select a into dumpfile '/tmp/x' from t
select a into x y from t
select 1 from dual
select 1 from dual where 1
select 1 where 1
select * where 1
select 1 limit 1
select 1 order by 1
select 1 union select 2
select 1 union all select 2
select 1 union distinct select 2
select 1 union select 2 order by 1
select 1 order by 1 union select 2
select 1 limit 1 union select 2
(select 1)
((select 1))
(select 1) union (select 2)
(select 1 limit 1) union (select 2 order by 1) limit 1
((select 1) union (select 2)) union select 3
(select 1) limit 1
(select 1) order by 1 limit 1 for update
select 1 union (select 2 limit 1)
select 1 except select 2
select 1 intersect select 2
select 1 intersect select 2 union select 3
select 1 minus select 2
select 1 union
union select 1
select (select 1)
select (select 1) + 1
select ((select 1) + 1)
select ((select 1) union (select 2))
select (select 1 union select 2)
select (select 1 limit 1)
select (select 1), 2
select select 1
select exists (select 1)
select exists (1)
select exists select 1
select not exists (select 1)
select 1 in (select 1)
select 1 in ((select 1))
select 1 in (select 1 union select 2)
select 1 in ()
select 1 in 1
select 1 in (1)
select 1 in (1, 2,)
select 1 in (,1)
select (1,2) in ((1,2),(3,4))
select (1,2) = (1,2)
select row(1,2) = row(1,2)
select row(1) = 1
select (1,2)
select 1 = any (select 1)
select 1 = some (select 1)
select 1 > all (select 1)
select 1 <=> all (select 1)
select 1 = any (1)
select any (select 1)
with x as (select 1) select * from x
with x (a) as (select 1) select * from x
with recursive x as (select 1 union all select 2) select * from x
with x as (select 1), y as (select 2) select * from x, y
with x as select 1 select * from x
with x (select 1) select * from x
with x as (select 1) update t set a = 1
with x as (select 1) delete from t
with x as (select 1)
values row(1,2), row(3,4)
values (1,2)
values row(1,2) order by 1 limit 1
table t
table t order by a limit 1
table t where a = 1
select * from (select 1) as x
select * from (select 1) x
select * from (select 1)
select * from (select 1) as x (a)
select * from (select 1 union select 2) as x
select * from ((select 1)) as x
select * from ((select 1) union (select 2)) as x
select * from ((select 1) as x)
select * from lateral (select 1) as x
select * from t, lateral (select t.a) as x
select * from t, u
select * from t join u
select * from t join u on t.a = u.a
select * from t join u using (a)
select * from t join u using (a, b)
select * from t join u using ()
select * from t join u using a
select * from t join u on
select * from t join u on t.a = u.a using (a)
select * from t inner join u on 1
select * from t cross join u
select * from t cross join u on 1
select * from t left join u on 1
select * from t left outer join u on 1
select * from t left join u
select * from t left outer u on 1
select * from t right join u using (a)
select * from t full join u on 1
select * from t full outer join u on 1
select * from t natural join u
select * from t natural left join u
select * from t natural right outer join u
select * from t natural inner join u
select * from t natural join u on 1
select * from t natural cross join u
select * from t straight_join u
select * from t straight_join u on 1
select * from t straight_join u using (a)
select * from t join u join v on 1 on 2
select * from t left join u left join v on 1 on 2
select * from t left join u join v on 1
select * from t join u join v
select * from (t join u)
select * from (t, u)
select * from (t, u) join v
select * from (t)
select * from ((t))
select * from (t) as x
select * from (t join u on 1) left join v on 2
select * from t left join (u join v on 1) on 2
select * from t left join (u, v) on 2
select * from t,
select * from , t
select * from t join
select * from join t
select * from t use index (a)
select * from t use index ()
select * from t force index (a, b)
select * from t force index ()
select * from t ignore key (primary)
select * from t use index for join (a) ignore index for order by (b)
select * from t use index for group by (a)
select * from t use index for where (a)
select * from t use (a)
select * from t as x use index (a)
select * from t use index (a) as x
select * from t partition (p0)
select * from t partition (p0, p1) as x
select * from t partition p0
select * from s.t
select * from s . t
select * from s.t.u
select * from .t
select * from `s`.`t`
select * from `s.t`
select * from t window w as (order by a)
select row_number() over w from t window w as (partition by a order by b)
select row_number() over (partition by a order by b desc)
select sum(a) over (order by b rows between 1 preceding and current row) from t
select row_number()
select rank() over () from t
select lag(a, 1) over (order by b) from t
select sum(distinct a) over () from t
select {oj t}
select * from {oj t left join u on 1}
select + 1
select - - 1
select --1
select -- 1
select 1 -- comment
select 1 --comment
select 1 # comment
select 1 /* comment */
select 1 /* comment
select /* a */ 1 /* b */ + /* c */ 2
select 1 /*! + 1 */
select 1 /*!50000 + 1 */
select 1 /*!99999 + 1 */
select 1 /*!999999 + 1 */
select 1 /*!080000 + 1 */
select 1 /*!50000 + 1
select 1 /*!99999 + /* nested */ 1 */
select /*+ no_index(t) */ 1
select /*+ max_execution_time(1000) */ 1
select /*+ bka(t1) no_bka(t2) */ * from t1, t2
select /*+ 1
select 1 */
select ~1
select !1
select ! ! 1
select not 1
select not not 1
select 1 = not 1
select 1 + not 1
select not 1 = 1
select - not 1
select 1 and not 1
select 1 xor not 1
select 1 and and 1
select 1 && 1
select 1 || 1
select 1 & 1
select 1 | | 1
select 1 << 2 >> 3
select 1 <>
select 1 <> 2
select 1 != 2
select 1 ! = 2
select 1 == 2
select 1 = = 2
select 1 <=> 2
select 1 < = 2
select 1 => 2
select 1 := 2
select @a := 2
select @a = 2
select @a:=1, @b:=@a+1
select @a := @b := 3
select 1 + @a := 2
select @a
select @'a'
select @"a b"
select @`a`
select @a.b
select @@a
select @@version
select @@global.max_connections
select @@session.autocommit
select @@local.autocommit
select @@global .autocommit
select @@global. autocommit
select @@ version
select @@persist.x
select @@a.b.c
select @@`version`
select @@'version'
select 1 is null
select 1 is not null
select 1 is true
select 1 is not false
select 1 is unknown
select 1 is 1
select 1 is null is null
select 1 is true is true
select 1 is null = 1
select 1 is true = 1
select 1 = 1 is true
select 1 is null is true
select 1 not null
select 1 isnull
select 1 between 2 and 3
select 1 between 2
select 1 between 2 and
select 1 between (2, 3)
select 1 not between 2 and 3
select 1 between 2 and 3 and 4
select 1 between 2 and 3 between 4 and 5
select 1 between 2 or 3 and 4
select 1 between 2 = 3 and 4
select 1 in (1) in (2)
select 1 in (1) = 2
select 1 = 2 in (3)
select 1 in (1) + 2
select 1 not in (1)
select not 1 in (1)
select 'a' like 'b'
select 'a' like 'b' escape '|'
select 'a' like 'b' escape
select 'a' not like 'b'
select 'a' like 'b' like 'c'
select 'a' like 'b' + 1
select 'a' like concat('b', 'c')
select 'a' like ('b' + 1)
select 'a' like -1
select 'a' ilike 'b'
select 'a' regexp 'b'
select 'a' rlike 'b'
select 'a' not regexp 'b'
select 'a' not rlike 'b'
select 'a' regexp 'b' regexp 'c'
select 'a' regexp 'b' + 1
select 'a' regexp binary 'b'
select 'a' sounds like 'b'
select 'a' sounds 'b'
select 1 member of ('[1]')
select 1 member of '[1]'
select 'a' collate utf8mb4_bin
select 'a' collate 'utf8mb4_bin'
select 'a' collate
select 'a' collate utf8mb4_bin collate utf8mb4_general_ci
select -'a' collate utf8mb4_bin
select binary 'a'
select binary 'a' = 'b'
select binary
select binary binary 'a'
select 'a' 'b'
select 'a' "b"
select 'a' b
select 'a' 'b' c
select N'a'
select n'a' 'b'
select _utf8mb4'a'
select _utf8mb4 'a'
select _utf8 'a'
select _latin1 0x41
select _latin1 x'41'
select _nosuch 'a'
select _binary 'a' 'b'
select x'41'
select X'4'
select x'4g'
select 0x41
select 0X41
select 0x4g
select 0x
select b'01'
select B'01'
select b'02'
select 0b01
select 0b02
select 'it''s'
select 'it\'s'
select 'unterminated
select "unterminated
select `unterminated
select ``
select `a``b`
select '\\'
select '\'
select 1.
select .5
select 1.5
select 1.5.5
select 1e5
select 1e
select 1e+
select 1e+5
select 1E-5
select 1.5e5
select 1.5e
select 1.e5
select 1a
select 1_000
select 1 000
select 99999999999999999999999999999999
select 1e400
select a1
select $a
select a$b
select a-b
select a.1
select t.1a
select t. a
select t .a
select t.select
select t. select
select select.a
select null
select true, false
select unknown
select default
select default(a) from t
select default(1) from t
select values(a)
select \N
select date '2000-01-01'
select date'2000-01-01', time'10:00:00', timestamp'2000-01-01 00:00:00'
select date 20000101
select {d '2000-01-01'}
select {t '10:00:00'}, {ts '2000-01-01 00:00:00'}
select {x 1}
select {1}
select interval 1 day
select now() + interval 1 day
select now() - interval 1 day
select interval 1 day + now()
select interval 1 day - now()
select now() + interval 1
select now() + interval 1 days
select now() + interval (1) day
select now() + interval '1:1' minute_second
select now() + interval 1 + 1 day
select now() + interval -1 day
select now() + interval 1 sql_tsi_day
select now() * interval 1 day
select interval(1, 2, 3)
select interval(1)
select 1 + interval(1, 2)
select date_add(now(), interval 1 day)
select date_add(now(), 1)
select date_sub(now(), interval 1 month)
select adddate(now(), 1)
select adddate(now(), interval 1 day)
select subdate(now(), interval 1 year_month)
select timestampadd(day, 1, now())
select timestampadd('day', 1, now())
select timestampdiff(sql_tsi_hour, now(), now())
select extract(year from now())
select extract(year, now())
select extract(foo from now())
select get_format(date, 'usa')
select get_format('date', 'usa')
select cast(1 as signed)
select cast(1 as signed integer)
select cast(1 as unsigned int)
select cast(1 as char)
select cast(1 as char(10))
select cast(1 as char character set utf8mb4)
select cast(1 as char(10) charset latin1)
select cast(1 as nchar(10))
select cast(1 as binary(10))
select cast(1 as varchar(10))
select cast(1 as decimal)
select cast(1 as decimal(10))
select cast(1 as decimal(10, 2))
select cast(1 as decimal(10,2,3))
select cast(1 as date)
select cast(1 as time(3))
select cast(1 as datetime(6))
select cast(1 as timestamp)
select cast(1 as year)
select cast(1 as float)
select cast(1 as double)
select cast(1 as real)
select cast(1 as double precision)
select cast(1 as json)
select cast(1 as int)
select cast(1 as bigint)
select cast(1, signed)
select cast(1 as)
select convert(1, signed)
select convert(1 using utf8mb4)
select convert('a' using 'latin1')
select convert('a', char(3))
select convert('a')
select char(65)
select char(65, 66 using utf8mb4)
select char()
select trim('a')
select trim(both from 'a')
select trim(both 'x' from 'a')
select trim(leading 'x' from 'a'), trim(trailing from 'a')
select trim('x' from 'a')
select trim(leading 'a')
select trim('a', 'b')
select substring('a', 1)
select substring('a', 1, 2)
select substring('a' from 1)
select substring('a' from 1 for 2)
select substring('a' for 2)
select substring('a')
select substr('a', 1), mid('a', 1, 2)
select position('a' in 'b')
select position('a', 'b')
select position('a' in ('b'))
select count(*)
select count(1)
select count()
select count(distinct a)
select count(distinct a, b)
select count(all a)
select count(a, b)
select count(distinct *)
select count (*)
select count (a)
select sum(a), avg(distinct a), min(all a), max(a)
select sum(*)
select sum(a, b)
select sum()
select bit_and(a), bit_or(a), bit_xor(a)
select std(a), stddev(a), stddev_pop(a), stddev_samp(a), var_pop(a), var_samp(a), variance(a)
select std(distinct a)
select group_concat(a)
select group_concat(distinct a, b order by c desc separator '-')
select group_concat(a separator 1)
select group_concat(a order by b limit 1)
select json_arrayagg(a), json_objectagg(a, b)
select now(), now(6), now( 3 )
select now(a)
select current_timestamp, current_timestamp(), current_timestamp(6)
select current_date, current_date(), current_time, current_time(3)
select localtime, localtimestamp(3), utc_date, utc_time(3), utc_timestamp
select curdate(), curtime(3), sysdate(6)
select curdate
select current_user, current_user(), user(), session_user(), system_user()
select database(), schema()
select database
select if(1, 2, 3)
select if(1, 2)
select ifnull(1, 2), nullif(1, 2), coalesce(1), coalesce(1, 2, 3)
select coalesce()
select left('a', 1), right('a', 1)
select left('a')
select replace('a', 'b', 'c'), repeat('a', 3), insert('a', 1, 2, 'b')
select mod(5, 3), truncate(1.5, 1), format(1, 2), format(1, 2, 'de_DE')
select year(now()), month(now()), day(now()), hour(now()), minute(now()), second(now()), microsecond(now()), quarter(now()), week(now()), week(now(), 1)
select year(now(), 1)
select date(now()), time(now()), timestamp(now()), timestamp(now(), 1)
select ascii('a'), charset('a'), collation('a'), reverse('a')
select row_count(), found_rows(), last_insert_id(), connection_id()
select concat('a', 'b')
select concat ('a', 'b')
select concat()
select concat('a' 'b')
select concat('a',)
select foo(1)
select s.foo(1)
select foo(a as b)
select nosuch (1, 2, 3)
select greatest(1, 2), least(1, 2)
select uuid(), rand(), rand(1), pi()
select match (a, b) against ('x')
select match (a) against ('x' in boolean mode)
select match (a) against ('x' in natural language mode with query expansion)
select match (a) against ('x' with query expansion)
select match a against ('x')
select case 1 when 2 then 3 end
select case 1 when 2 then 3 else 4 end
select case when 1 then 2 end
select case when 1 then 2 when 3 then 4 else 5 end
select case end
select case 1 end
select case 1 else 2 end
select case when 1 then 2
select case when 1 end
select weight_string('a'), weight_string('a' as char(3)), weight_string('a' as binary(3))
select a->'$.b', a->>'$.b' from t
select 1->'$.b'
select t.a->'$.b' from t
select a->b from t
select json_extract(a, '$.b')
select json_value(a, '$.b')
select status, name, date, time, timestamp, year, text, type, value, user, host, comment, position, count, max from t
select key from t
select rank from t
select `rank` from t
select order from t
select group from t
select desc from t
select end, begin, offset, no, only from t
select 1 end
select 1 rank
select 1 row
select 1 offset
select 1 date
select 1 from t status
insert into t values (1)
insert into t values (1, 2), (3, 4)
insert into t values (1, 2), (3)
insert t values (1)
insert into t value (1)
insert into t () values ()
insert into t values ()
insert into t (a) values (1)
insert into t (a, b) values (1, default)
insert into t (a, b) values (1, default(b))
insert into t (t.a, s.t.b) values (1, 2)
insert into t (a,) values (1)
insert into t a values (1)
insert into t values 1
insert into t values (1),
insert into t values
insert into t
insert t
insert into values (1)
insert into t values (1) on duplicate key update a = 1
insert into t values (1) on duplicate key update a = values(a), b = b + 1
insert into t values (1) on duplicate key update
insert into t values (1) on duplicate key a = 1
insert into t values (1) as new on duplicate key update a = new.a
insert into t values (1) as new(x) on duplicate key update a = x
insert into t values (1) as new(x, y)
insert into t values (1) new on duplicate key update a = 1
insert into t set a = 1
insert into t set a = 1, b = default
insert into t set a := 1
insert into t set a
insert into t set a = 1 as new on duplicate key update a = new.a
insert into t select 1
insert into t (a) select 1
insert into t (select 1)
insert into t (a) (select 1)
insert into t select 1 on duplicate key update a = 1
insert into t (a) select b from u where c on duplicate key update a = 1
insert into t table u
insert into t values row(1, 2)
insert into t with x as (select 1) select * from x
with x as (select 1) insert into t select * from x
insert ignore into t values (1)
insert low_priority into t values (1)
insert high_priority ignore t values (1)
insert delayed into t values (1)
insert quick into t values (1)
insert into t partition (p0) values (1)
insert into s.t values (1)
insert into t values (1) returning a
insert into t values ((select 1))
insert into t values (1 + 1, now(), 'a' 'b', -1, +1, x'41', null, true)
insert into t values (1) where a = 1
replace into t values (1)
replace t set a = 1
replace into t select 1
replace into t values (1) on duplicate key update a = 1
replace ignore into t values (1)
replace low_priority into t values (1)
replace delayed into t values (1)
update t set a = 1
update t set a = 1, b = default where c
update t set a = 1 where b order by c limit 1
update t set a = 1 limit 1, 2
update t set a = 1 limit 1 offset 1
update t set a
update t set
update t
update set a = 1
update t a set a.b = 1
update t as a set b = 1
update ignore t set a = 1
update low_priority ignore t set a = 1
update t set a = 1 from u
update t, u set t.a = u.a where t.b = u.b
update t join u on t.a = u.a set t.b = 1
update t set t.a = 1, s.t.b = 2
update t set a := 1
update t set a = 1 where
update (t) set a = 1
update t partition (p0) set a = 1
delete from t
delete t
delete from t where a
delete from t where a order by b limit 1
delete from t limit 1, 2
delete from t as x where x.a
delete from t x
delete low_priority quick ignore from t
delete from t using t, u where t.a = u.a
delete t from t, u where t.a = u.a
delete t, u from t join u on 1
delete t.* from t
delete t.*, s.u.* from t, s.u
delete from t, u
delete from t.* using t, u
delete from t, u using t join u on 1
delete t from t order by a
delete from t join u on 1
delete * from t
delete from t partition (p0) where a
delete from s.t
truncate t
truncate table t
truncate table s.t
truncate table t, u
truncate
do 1
do 1, 2
do sleep(0)
do
create database d
create schema d
create database if not exists d
create database d character set utf8mb4
create database d default character set = utf8mb4 collate = utf8mb4_bin
create database d charset utf8mb4 default collate utf8mb4_bin
create database d default
create database
create database d.e
create database d encryption 'n'
alter database d charset utf8mb4
alter database charset utf8mb4
alter database d
drop database d
drop schema if exists d
drop database
drop database d, e
create table t (a int)
create table t (a int, b int)
create table t (a)
create table t ()
create table t
create table (a int)
create table t (a int,)
create table t (a int b int)
create table if not exists t (a int)
create table if exists t (a int)
create temporary table t (a int)
create table s.t (a int)
create table t like u
create table t (like u)
create table if not exists t like u
create table t select 1
create table t as select 1
create table t (a int) select 1
create table t (a int) as select 1
create table t (select 1)
create table t ignore select 1
create table t (a int) replace as select 1
create table t (a int primary key)
create table t (a int key)
create table t (a int unique)
create table t (a int unique key)
create table t (a int auto_increment primary key)
create table t (a int not null auto_increment, primary key (a))
create table t (a int null default null)
create table t (a int not null default 0)
create table t (a int not null null)
create table t (a int default -1, b int default +1)
create table t (a int default (1 + 1))
create table t (a int default 1 + 1)
create table t (a int default now())
create table t (a datetime default now(6) on update now(6))
create table t (a timestamp default current_timestamp on update current_timestamp)
create table t (a timestamp default current_timestamp() on update current_timestamp())
create table t (a int default a)
create table t (a int default true, b char(1) default 'x', c bit default b'1', d blob default (x'41'))
create table t (a int comment 'x')
create table t (a int comment x)
create table t (a int primary key auto_increment comment 'x' not null)
create table t (a int primary)
create table t (a int references u (b))
create table t (a int check (a > 0))
create table t (a int constraint c check (a > 0) not enforced)
create table t (a int, check (a > 0))
create table t (a int, constraint c check (a > 0))
create table t (a int, constraint check (a > 0) enforced)
create table t (a int generated always as (b + 1) virtual)
create table t (a int as (b + 1) stored not null)
create table t (a int as b)
create table t (a int invisible)
create table t (a int visible)
create table t (a int collate utf8mb4_bin)
create table t (a varchar(10) collate utf8mb4_bin)
create table t (a varchar(10) character set utf8mb4 collate utf8mb4_bin not null)
create table t (a varchar(10) charset utf8mb4)
create table t (a varchar(10) binary)
create table t (a varchar(10) ascii, b char unicode, c char byte)
create table t (a varchar)
create table t (a varchar())
create table t (a varchar(a))
create table t (a varchar(10, 2))
create table t (a char, b char(10), c character(10), d nchar(10), e national char(10), f national varchar(10), g nvarchar(10), h character varying(10))
create table t (a tinyint, b smallint, c mediumint, d int, e integer, f bigint, g int1, h int2, i int3, j int4, k int8, l middleint)
create table t (a tinyint(1), b int(11) unsigned zerofill, c bigint(20) unsigned, d int signed)
create table t (a unsigned int)
create table t (a int unsigned not null)
create table t (a int not null unsigned)
create table t (a bool, b boolean, c serial)
create table t (a serial default value)
create table t (a int serial default value)
create table t (a decimal, b decimal(10), c decimal(10, 2), d dec(5), e numeric(5, 1), f fixed(3) unsigned)
create table t (a decimal(10, 2, 3))
create table t (a float, b float(10), c float(10, 2), d double, e double(10, 2), f double precision, g real, h float4, i float8)
create table t (a double(10))
create table t (a bit, b bit(8))
create table t (a date, b time, c time(3), d datetime, e datetime(6), f timestamp(2), g year, h year(4))
create table t (a date(3))
create table t (a binary, b binary(10), c varbinary(10))
create table t (a varbinary)
create table t (a tinytext, b text, c text(100), d mediumtext, e longtext, f tinyblob, g blob, h blob(100), i mediumblob, j longblob, k long, l long varchar, m long varbinary)
create table t (a tinytext(10))
create table t (a enum('a', 'b'), b set('a', 'b') default 'a')
create table t (a enum())
create table t (a enum)
create table t (a enum(1))
create table t (a enum('a') character set latin1 collate latin1_bin)
create table t (a json, b geometry, c point, d geometrycollection)
create table t (a string)
create table t (a uuid)
create table t (a int4(3))
create table t (a int, primary key (a))
create table t (a int, primary key pk (a))
create table t (a int, primary key using btree (a))
create table t (a int, primary key (a) using btree)
create table t (a int, constraint pk primary key (a))
create table t (a int, constraint primary key (a))
create table t (a int, constraint c unique (a))
create table t (a int, unique (a))
create table t (a int, unique key k (a))
create table t (a int, unique index k (a))
create table t (a int, key (a))
create table t (a int, key k (a))
create table t (a int, index k (a desc))
create table t (a int, index k using hash (a))
create table t (a varchar(10), key k (a(5) asc))
create table t (a varchar(10), key k (a(5) asc, b desc) comment 'x' invisible)
create table t (a int, key k ((a + 1)))
create table t (a int, key k (a + 1))
create table t (a int, key k ())
create table t (a int, key k a)
create table t (a int, constraint c key (a))
create table t (a text, fulltext key k (a))
create table t (a text, fulltext (a) with parser ngram)
create table t (a point not null, spatial index k (a))
create table t (a int, foreign key (a) references u (b))
create table t (a int, constraint fk foreign key i (a) references s.u (b) on delete cascade on update set null)
create table t (a int, foreign key (a) references u (b) on delete no action match full)
create table t (a int, foreign key (a) references u (b) match full on delete restrict)
create table t (a int, foreign key a references u (b))
create table t (a int) engine = innodb
create table t (a int) engine innodb
create table t (a int) engine=InnoDB auto_increment=5 default charset=utf8mb4 collate=utf8mb4_0900_ai_ci comment='x' row_format=dynamic
create table t (a int) engine = 'innodb', auto_increment = 5, charset = latin1
create table t (a int) engine = innodb,
create table t (a int) engine =
create table t (a int) row_format = foo
create table t (a int) stats_persistent = 1 stats_auto_recalc = default stats_sample_pages = 10 pack_keys = 0 checksum = 1 delay_key_write = 1 max_rows = 10 min_rows = 1 avg_row_length = 5 key_block_size = 8
create table t (a int) data directory = '/x' index directory = '/y'
create table t (a int) compression = 'zlib' encryption = 'n'
create table t (a int) default engine = innodb
create table t (a int) foo = 1
create table t (a int) partition by hash (a) partitions 4
create table t (a int) partition by range (a) (partition p0 values less than (10), partition p1 values less than maxvalue)
create table t (a int) partition by
create table t (`a b` int, `select` int)
create table t (select int)
create table t (a.b int)
create table `t` (`id` int(11) NOT NULL AUTO_INCREMENT, `k` int(11) NOT NULL DEFAULT '0', `c` char(120) NOT NULL DEFAULT '', `pad` char(60) NOT NULL DEFAULT '', PRIMARY KEY (`id`), KEY `k_1` (`k`)) ENGINE=InnoDB
create index i on t (a)
create unique index i on t (a, b(10) desc)
create fulltext index i on t (a)
create index i on t (a) using btree comment 'x'
create index i using hash on t (a)
create index on t (a)
create index i on t
create index if not exists i on t (a)
create index i on t (a) algorithm = inplace lock = none
create index i on t (a) algorithm inplace
drop index i on t
drop index i
drop index `primary` on t
drop index i on t algorithm = copy lock = shared
drop table t
drop tables t
drop table if exists t, s.u
drop temporary table t
drop table t cascade
drop table t restrict
drop table
drop t
rename table t to u
rename table t to u, v to w
rename tables t to u
rename t to u
rename table t u
alter table t
alter table t add a int
alter table t add column a int
alter table t add column a int first
alter table t add column a int after b
alter table t add column (a int, b int)
alter table t add (a int, key k (a))
alter table t add a int, add b int
alter table t add
alter table t add index (a)
alter table t add index i (a)
alter table t add key i (a) using btree
alter table t add unique (a)
alter table t add unique index i (a)
alter table t add primary key (a)
alter table t add constraint pk primary key (a)
alter table t add constraint c foreign key (a) references u (b)
alter table t add check (a > 1)
alter table t add fulltext i (a)
alter table t drop a
alter table t drop column a
alter table t drop index i
alter table t drop key i
alter table t drop primary key
alter table t drop foreign key f
alter table t drop check c
alter table t drop constraint c
alter table t drop
alter table t modify a int
alter table t modify column a int not null first
alter table t change a b int
alter table t change column a b int after c
alter table t change a int
alter table t rename column a to b
alter table t rename index i to j
alter table t rename key i to j
alter table t rename u
alter table t rename to u
alter table t rename as s.u
alter table t alter a set default 1
alter table t alter column a set default (1 + 1)
alter table t alter a drop default
alter table t alter a set visible
alter table t alter index i invisible
alter table t auto_increment = 5
alter table t engine = innodb
alter table t engine = innodb, comment 'x'
alter table t comment = 'x' auto_increment = 3
alter table t convert to character set utf8mb4
alter table t convert to charset utf8mb4 collate utf8mb4_bin
alter table t default charset utf8mb4
alter table t character set = utf8mb4, collate = utf8mb4_bin
alter table t force
alter table t disable keys
alter table t enable keys
alter table t order by a, b
alter table t algorithm = instant, add a int
alter table t add a int, algorithm = inplace, lock = none
alter table t lock exclusive
alter table t foo
alter table t add a int b int
alter table t add column if not exists a int
alter table t discard tablespace
alter t add a int
begin
begin work
begin transaction
start transaction
start transaction read only
start transaction read write
start transaction with consistent snapshot
start transaction with consistent snapshot, read only
start transaction read only, read write
start transaction isolation level serializable
start
commit
commit work
commit and chain
commit and no chain
commit and no chain release
commit and chain release
commit no release
commit release
commit and
rollback
rollback work and chain
rollback to s
rollback to savepoint s
rollback work to savepoint s
rollback savepoint s
savepoint s
savepoint
release savepoint s
release s
set autocommit = 1
set autocommit = on
set @@autocommit = 0
set @@session.autocommit = 0
set @@global.x = 1
set global x = 1
set session x = 1, global y = 2
set local x = default
set persist x = 1
set persist_only x = 1
set @@persist.x = 1
set x = default
set x := 1
set x 1
set x
set
set @a = 1
set @a := 1, @b = (select 1)
set @a = default
set names utf8mb4
set names 'utf8mb4'
set names utf8mb4 collate utf8mb4_bin
set names default
set names
set names = utf8mb4
set character set utf8mb4
set charset 'utf8mb4'
set character set default
set character utf8mb4
set password = 'x'
set password for 'a'@'b' = 'x'
set password for a = 'x'
set password 'x'
set transaction isolation level read committed
set transaction isolation level read uncommitted
set session transaction isolation level repeatable read
set global transaction isolation level serializable
set transaction read only
set transaction read write, isolation level serializable
set transaction isolation level snapshot
set transaction isolation level serializable, isolation level serializable
set transaction
set sql_mode = 'ansi'
set sql_mode = ansi
set sql_mode = ''
set session sql_mode = concat(@@sql_mode, ',ansi')
set time_zone = '+00:00'
set character_set_results = null
set character_set_results = binary
set x = all
set x = on, y = off
set foreign_key_checks = 0, unique_checks = 0
set @@a.b = 1
set a.b = 1
set global a.b = 1
set @old_x = @@x, x = 0
set x = y = 1
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */
/*!40101 SET NAMES utf8mb4 */
/*!40103 SET TIME_ZONE='+00:00' */
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */
/*!40000 ALTER TABLE `t` DISABLE KEYS */
use d
use `d`
use
use d e
kill 1
kill query 1
kill connection 1
kill @a
kill 1 + 1
kill
prepare s from 'select 1'
prepare s from @a
prepare s from select 1
prepare s
execute s
execute s using @a
execute s using @a, @b
execute s using 1
deallocate prepare s
drop prepare s
deallocate s
show databases
show databases like 'a%'
show databases where `database` = 'a'
show schemas
show databases like a
show tables
show tables from d
show tables in d like 'a%'
show full tables from d where table_type = 'VIEW'
show extended full tables
show tables d
show open tables from d like 'x'
show table status
show table status from d like 'x'
show columns from t
show full columns from t from d
show columns from d.t like 'a%'
show fields in t
show extended columns from t
show columns
show index from t
show indexes from t in d
show keys from d.t where key_name = 'x'
show extended index from t
show full index from t
show index from t like 'a'
show create table t
show create table d.t
show create database d
show create schema if not exists d
show create user a
show create user current_user()
show create view v
show create t
show variables
show variables like 'a%'
show global variables where variable_name = 'x'
show session variables
show local variables
show status
show global status like 'x'
show session status
show full status
show processlist
show full processlist
show warnings
show warnings limit 5
show warnings limit 1, 5
show errors
show errors limit 1
show count(*) warnings
show count(*) errors
show count(1) warnings
show engines
show storage engines
show engine innodb status
show engine innodb mutex
show engine innodb
show engine 'innodb' logs
show grants
show grants for a
show grants for 'a'@'b'
show grants for current_user
show grants for current_user()
show privileges
show character set
show character set like 'u%'
show charset
show collation
show collation like 'u%'
show collation where charset = 'utf8mb4'
show plugins
show triggers
show triggers from d like 'x'
show events
show function status
show procedure status like 'x'
show procedure code p
show binary log status
show binary logs
show replica status
show profiles
show profile
show foo
show
show full databases
describe t
desc t
explain t
desc d.t
desc t a
desc t 'a%'
describe
explain select 1
explain format=json select 1
explain format = tree select 1
explain format = 'traditional' select 1
explain format json select 1
explain extended select 1
explain partitions select 1
explain analyze select 1
explain analyze format = tree select 1
explain insert into t values (1)
explain update t set a = 1
explain delete from t
explain replace into t values (1)
explain (select 1)
explain create table t (a int)
explain for connection 5
explain table t
desc select 1
describe insert into t select 1
check table t
check table t, u quick fast
check table t for upgrade
check table t extended medium changed
check tables t
check t
analyze table t
analyze local table t, u
analyze no_write_to_binlog table t
analyze table t update histogram on a
analyze t
optimize table t
optimize local table t
repair table t
repair table t quick
checksum table t
checksum table t extended
flush tables
flush table t, u
flush tables with read lock
flush tables t with read lock
flush tables t for export
flush privileges
flush status
flush logs
flush binary logs
flush engine logs, error logs
flush status, privileges
flush hosts
flush local tables
flush foo
flush
lock tables t read
lock tables t write, u as x read local
lock tables t
lock table t low_priority write
lock tables t read write
unlock tables
unlock table
create user a
create user a@b
create user 'a'@'b' identified by 'x'
create user 'a'@'b' identified with caching_sha2_password by 'x'
create user 'a'@'b' identified with 'caching_sha2_password' as 'x'
create user a identified with mysql_native_password
create user a identified by random password
create user a identified 'x'
create user if not exists a, b@c
create user a require ssl
create user a require none
create user a require subject 'x' and issuer 'y'
create user a with max_queries_per_hour 5
create user a password expire never account lock
create user a password expire interval 5 day
create user a account unlock
create user a comment 'x'
create user a attribute '{}'
create user a @b
create user a@
create user a@'%'
create user ''@localhost
create user
create user a default role b
alter user a identified by 'x'
alter user user() identified by 'x'
alter user if exists a@b account lock
alter user a password expire
alter user a require x509 with max_user_connections 3
alter user a
drop user a
drop user if exists a, 'b'@'c'
drop user
rename user a to b
rename user a@b to c@d, e to f
grant all on *.* to a
grant all privileges on d.* to 'a'@'b' with grant option
grant select, insert, update on d.t to a
grant select (a, b), insert (c) on d.t to a
grant all on * to a
grant all on t to a
grant create temporary tables, lock tables, create view, show view on d.* to a
grant replication slave, replication client on *.* to a
grant execute on function d.f to a
grant execute on procedure d.p to a
grant usage on *.* to a
grant grant option on *.* to a
grant select, grant option on d.* to a
grant select to a
grant r to a
grant 'r'@'%' to a, b
grant r1, r2 to a with admin option
grant proxy on a to b
grant all on d.* a
grant all d.* to a
grant all on d.* to a identified by 'x'
grant system_variables_admin on *.* to a
grant create user, reload, shutdown, process, file, super, event, trigger, index, alter, drop, references, show databases, create role, drop role, create tablespace, alter routine, create routine on *.* to a
revoke all on *.* from a
revoke all privileges, grant option from a
revoke select on d.* from a, b
revoke grant option on d.* from a
revoke if exists select on d.* from a
revoke r from a
revoke select on d.* to a
revoke proxy on a from b
call p
call p()
call p(1, @a)
call d.p(1)
load data infile 'x' into table t
handler t open
xa start 'x'
xa prepare 'x'
help 'x'
install plugin x soname 'y'
get diagnostics @a = number
purge binary logs to 'x'
reset binary logs and gtids
change replication source to source_host = 'x'
stop replica
start replica
restart
shutdown
create view v as select 1
create or replace view v as select 1
create trigger tr before insert on t for each row set @a = 1
create procedure p() select 1
create function f() returns int return 1
create event e on schedule every 1 day do select 1
create role r
drop view v
drop trigger tr
drop procedure if exists p
drop function f
drop event e
drop role r
set role r
set default role r to a
create
create foo
drop foo
alter foo
foo
1
'select 1'
select 1 ; select 2
;
(
)
()
select (
select (1
select 1)
select (1))
select ((1)
select ()
select (1,)
select (,1)
select @
select @@
select :a
select %
select 1 % 2
select 1 mod 2 div 3
select 1 ^ 2
select 1 ** 2
select ?
select ? + ?
select a?
select a from t where b = ?
select `a` . `b` . `c` from `a` . `b`
select	1	,	2
select a from t where a <=> null and b is not null or not c and d in (1,2) xor e between 1 and 2 && f || g
SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100
UPDATE sbtest1 SET k=k+1 WHERE id=1
DELETE FROM sbtest1 WHERE id=1
INSERT INTO sbtest1 (id, k, c, pad) VALUES (1, 2, 'a', 'b')
SELECT @@session.transaction_isolation, @@version_comment LIMIT 1
SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1
SELECT VERSION(), DATABASE(), @@sql_mode, @@lower_case_table_names
SELECT CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL
select a from t where (a, b) > (1, 2)
select a, count(*) c from t group by a having c > 1 order by c desc limit 10
select if(a > b, 'x', 'y') as z from t where c like '%x%' and d not in (select e from u where u.f = t.f)
select t1.*, (select max(x) from t2 where t2.a = t1.a) as m from t1 left join t3 on t3.b = t1.b and t3.c is null where t1.d between '2020-01-01' and '2020-12-31'
select * from t where a = 1 procedure analyse()
select * from t tablesample bernoulli (10)
select a from t qualify row_number() over () = 1
select grouping(a) from t group by a with rollup
select a from t group by rollup (a)
select * from json_table('[1]', '$[*]' columns (a int path '$')) as jt
CREATE TABLE sbtest1( id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id) ) /*! ENGINE = innodb */ 
CREATE INDEX k_1 ON sbtest1(k)
INSERT INTO sbtest1(k, c, pad) VALUES(4992833, '83868641912-28773972837', '67847967377-48000963322'),(5019684, '38014276128-25250245652', '23183251411-36241541236')
SELECT c FROM sbtest1 WHERE id=?
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c
UPDATE sbtest1 SET c='x' WHERE id=?
DROP TABLE IF EXISTS sbtest1
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
SET AUTOCOMMIT = 0
SET @@session.autocommit = OFF
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
SELECT @@SQL_MODE, @@SQL_AUTO_IS_NULL, @@character_set_client, @@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL
SELECT @@global.gtid_mode, @@`session`.x
SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.tables WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'VIEW') ORDER BY 1
SELECT COLUMN_NAME, DATA_TYPE, CASE WHEN COLLATION_NAME = 'utf8mb4_0900_ai_ci' THEN NULL ELSE COLLATION_NAME END AS COLLATION_NAME FROM information_schema.columns WHERE TABLE_NAME = 't'
SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`
SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE ORDER BY LOGFILE_GROUP_NAME
SET SQL_QUOTE_SHOW_CREATE=1/*!40102 ,SQL_MODE=concat(@@sql_mode, _utf8 ',NO_KEY_OPTIONS,NO_TABLE_OPTIONS,NO_FIELD_OPTIONS') */
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */
LOCK TABLES `t` READ /*!32311 LOCAL */
FLUSH /*!40101 LOCAL */ TABLES
/*!40101 SET character_set_client = @saved_cs_client */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET NAMES utf8mb4 */;
/*M!100616 SET NAMES utf8mb4 */
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
show variables like 'version_comment'
SHOW VARIABLES WHERE Variable_name IN ('language', 'net_write_timeout', 'wait_timeout') OR Variable_name = 'sql_mode'
SHOW FULL TABLES FROM `d` LIKE 'x'
SHOW FULL COLUMNS FROM `t` FROM `d` LIKE '%'
SHOW INDEX FROM `t` FROM `d`
SHOW /*!50002 FULL*/ TABLES
SHOW KEYS FROM `t` WHERE Key_name = 'PRIMARY'
SELECT t.`a` AS `t.a`, COUNT(DISTINCT `u`.`b`) AS `c` FROM `t` AS `t` LEFT OUTER JOIN `u` ON (`t`.`a` = `u`.`a` AND NOT (`u`.`b` IS NULL)) WHERE (`t`.`a` IN (1, 2, 3) OR `t`.`b` LIKE BINARY 'x%' ESCAPE '|') GROUP BY `t`.`a` HAVING COUNT(*) > 1 ORDER BY `c` DESC, `t.a` ASC LIMIT 21 OFFSET 5
SELECT (1) AS `a` FROM `t` WHERE `t`.`id` = 1 LIMIT 1
INSERT INTO `t` (`id`, `name`, `createdAt`) VALUES (DEFAULT, 'x', '2020-01-01 00:00:00.000'), (DEFAULT, 'y', NULL)
INSERT INTO t (a, b) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1, b = IF(VALUES(b) > b, VALUES(b), b)
UPDATE `t` SET `n` = `n` + 1, `d` = NOW(), `j` = JSON_SET(`j`, '$.a', 1) WHERE `id` IN (SELECT * FROM (SELECT `id` FROM `t` WHERE `x` < 5 ORDER BY `x` LIMIT 10) AS q)
SELECT SQL_CALC_FOUND_ROWS wp_posts.ID FROM wp_posts WHERE 1=1 AND ((wp_posts.post_type = 'post' AND (wp_posts.post_status = 'publish'))) ORDER BY wp_posts.post_date DESC LIMIT 0, 10
SELECT FOUND_ROWS()
SELECT option_value FROM wp_options WHERE option_name = 'x' LIMIT 1
SELECT DATE_FORMAT(d, '%Y-%m') AS m, SUM(IF(x = 1, 1, 0)) FROM t WHERE d >= DATE_SUB(CURDATE(), INTERVAL 30 DAY) GROUP BY m WITH ROLLUP
SELECT GROUP_CONCAT(DISTINCT CONCAT(a, ':', b) ORDER BY a DESC SEPARATOR '; ') FROM t
SELECT * FROM t WHERE MATCH(a, b) AGAINST('+x -y' IN BOOLEAN MODE)
SELECT a FROM t WHERE d BETWEEN '2020-01-01' AND '2020-01-01' + INTERVAL 1 MONTH - INTERVAL 1 DAY
SELECT * FROM a NATURAL JOIN b, c STRAIGHT_JOIN d ON c.x = d.x WHERE a.x = ANY (SELECT x FROM e)
SELECT IFNULL(NULLIF(TRIM(BOTH ' ' FROM a), ''), 'none'), CAST(b AS DECIMAL(10, 2)), CONVERT(c USING utf8mb4) COLLATE utf8mb4_bin FROM t
ALTER TABLE t ADD COLUMN x VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '' AFTER y, ADD UNIQUE KEY ux (x, y(10)), DROP KEY z, ALGORITHM=INPLACE, LOCK=NONE
CREATE TABLE IF NOT EXISTS `d`.`t` (`id` bigint unsigned NOT NULL AUTO_INCREMENT, `a` varchar(255) COLLATE utf8mb4_unicode_ci DEFAULT NULL, `b` enum('x','y') NOT NULL DEFAULT 'x', `c` timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), `d` decimal(20,6) unsigned zerofill, `e` bit(1) DEFAULT b'0', PRIMARY KEY (`id`), UNIQUE KEY `u` (`a`(191),`b` DESC) USING BTREE COMMENT 'k', KEY `f` ((lower(`a`)))) ENGINE=InnoDB AUTO_INCREMENT=42 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci ROW_FORMAT=DYNAMIC COMMENT='t'
CREATE USER IF NOT EXISTS 'app'@'10.%' IDENTIFIED WITH 'caching_sha2_password' BY 'secret' REQUIRE NONE WITH MAX_USER_CONNECTIONS 5 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK
GRANT SELECT, INSERT, UPDATE, DELETE ON `app\_db`.* TO 'app'@'%' WITH GRANT OPTION
