select 1,2,3 from t where a in (1,2,3) and b in (1) and c in (1,a) and (a,b) in ((1,2),(3,4)) and (a,b) in ((1,2)) limit 1,2
insert into t (a,b) values (1,2),(3,4)
insert into t (a) values (1),(2)
insert into t (a,b) values (1, now()), (2, now())
select if(1,2,a) , null is null, a is not null, null, true, -1, - 1, 2-1, +-1, (-1), a in (-1,2), x'11',0x11,b'1','a' 'b',_utf8mb4'a', N'a' from `t` as `T`
select DATE '2000-01-01', now() + interval 1 day
set @a=1, session sql_mode = '', autocommit=1
select count(*), Count(*), concat('a',2), user(), current_timestamp, current_timestamp(), substr('a',1) from t as x where `x``y` = 1
SELECT t.a, t . b FROM sql_digests.t;
create table v (a int null default null, b varchar(10) default 'x', primary key(a), c decimal(10,2))
select * from t order by 2 limit 10 offset 5
select "a", `b`, a||b, a&&b, !a, a<>b, a!=b,  @a := 2, @`x y`, @'q', j->'$.b', j->>'$.c',@x, @@version, @@global.max_connections, a<=>b, ~a, a^b, a<<b, a>>1,a|b from t
insert into u values (default, 1, 'x')
select case when 1 then 2 else 3 end
select * from t where a between 1 and 2
select Status, NAME, t.name, t.STATUS from t
select a from t where a = -1 and b > -1 and c = 1 - -1 and a in (null, 1, true)
insert into u values (null,1,default),(2,3,4)
insert into t(a,b) values (1,2) on duplicate key update a=values(a), b=3
delete from t where a=1 limit 1
select * from t force index (primary) where a=1 for update
show tables like 'a%'
show full columns from t
drop schema x
create database x
show databases
select distinctrow a from t
select some from (select 1 some) q
select * from t where a = any (select 1)
select a as 'x', a as "y", a z from t
select cast(1 as char(10)), cast(a as signed), convert(a, decimal(10,2)) from t
select a from t where c rlike 'x' and c regexp 'y' and a mod 2
update t set a=1,b=2 where c='x'
replace t set a=1
select year(now()), hour(now()), day(now()), now() + interval 1 hour
select std(a), variance(a), var_pop(a) from t
select schema(), database()
create table x(a int4, b integer, c int1, d float8, e dec, f character(10), g varcharacter(10), h boolean,i int8)
select 'a' 'b'
select a from t where b=1 or b=2 and not c=2
select (1),(2,3)=(4,5),((1))
select f.a from t f, t g where f.a in ('a','b') and g.a in (1)
select * from t where (a,b)=(1,2)
select greatest(1,2,a,3,4) from t
select a+1,2 from t
select 1,a,1,2,a,1,2,3 from t
select -a, - 5, a - 5, (a) - 5, a * -5 from t
select 1 -- x
select 1/* y */+1
select a from t where a in (1,2,a)
select a from t where a not in (1,2)
select a from t limit 5
insert into u values row(1,2,3)
select interval(1,2,3)
select timestamp'2020-01-01 00:00:00', {d '2020-01-01'}
prepare s from 'select 1'
select @@session.autocommit, @@SQL_MODE
select * from t a join t b on a.a=b.a left outer join t c using(a) natural join t d
select a b from t group by a,2 having a>1
kill query 5
alter table t add column x int default 5 after a, drop index k
create index i on t (a, c(10) desc)
grant select on x.* to u@h
select 1e1, 1.2, 99999999999999999999
select a from t where a in (( 1 ), 2)
select a in (1), a in (1,2), (a) in ((1),(2)) from t
select a from t where b = 1 and c in ('x') or d in (1,2,3) order by a desc limit 3
select a from t where b in (select b from u where c = 'x' limit 1)
select a, -1 from t where a > - 1 and b < +1
select a from t where a in (-1) or a in (-1, -2)
select a from t where a in (1 + 1, 2)
select round(1.5, 1), round(a, 2), ifnull(a, 0), coalesce(a, 1, 2, b, 3) from t
select * from t where c like 'x%' escape '|' and c not like 'y'
select sum(a), min(b), max(c), avg(d), group_concat(distinct a order by b separator ',') from t
select count(distinct a, b) from t
select extract(year from now()), trim(both 'x' from c), substring(c from 1 for 2), position('a' in c) from t
select a from t union all select b from u order by 1 limit 2
with x as (select 1) select * from x
select date_add(now(), interval 1 day), adddate(now(), 5)
insert into u (a, b) select a, 5 from t where b = 3
insert into u set a = 1, b = 2
update t set b = b + 1 where a = 5 order by a limit 1
update t, u set t.b = u.b where t.a = u.a
delete t from t join u on t.a = u.a where u.b = 3
select /*+ MAX_EXECUTION_TIME(10) */ 1
select a from t where not (a = 1) and !(b = 2)
select (a = 1), (1 = a) from t
select a from t where (a) = (1)
select 'x', "y", 'it''s' from t
select exists (select 1 from t), not exists (select 1)
select 1 where 1 = 1
select a from t where a = 1 and (b = 2 or c = 'y') and (d in (1))
show variables like 'x'
show global status where variable_name='x'
lock tables t read
analyze table t
flush tables
select null, null, 1, null
insert into u values (null, null, 'x')
insert into u values (1, null, 'x'), (2, 3, null)
select a from t where a is null or a is not null or null
select default(a), a from t
select _latin1 'a', _binary x'41', n'x' from t
select @a, @b := 1, @c:=@b+1
select if(a, 1, 2), left(c, 2), right(c, 3), repeat('x', 4), replace(c, 'a', 'b'), mod(a, 3) from t
select utc_date, utc_time, utc_timestamp, current_date, current_time, localtime, localtimestamp
select a div 2, a % 3, a ^ 1, a & 1, a | 1, a << 1, ~1, a xor 1 from t
select 1 from t where 1 in (1) and 2 in (2, 3) and a in (select 1)
select a from t where a between -1 and -2
set names utf8mb4
set names 'utf8mb4' collate 'utf8mb4_bin'
set transaction isolation level read committed
begin
commit
rollback
select 1 + 2 * 3
select -(-1), -(a), (-1) from t
select json_extract(j, '$.a', '$.b') from t
select a from t where a = 0x41 or a = b'1' or c = x'4142'
select case when a then -1 else -2 end, if(a, -1, - 2), - 3 from t
update t set a = -1, b = - 2 where c = -3 and d <> -4 or d < -5 or d between -6 and -7
select a from t where a in (-1, 2, +3) and b not in (-1) and c like -1
select 5 div -2, 5 mod -2, 5 * -1, 5 / -1, 5 % -1, 5 ^ -1, 5 | -1, 5 & -1, 5 << -1
select -a, -(1), +-+1, ~-1, !-1, not -1
select a, b from t order by 1, 2 desc limit 5
select a, b from t group by 1, 2 order by a + 1, 2, 3
select a from t order by -1
select a from t order by 'x', 2
select sum(a) over (partition by 1 order by 2) from t
select (null), (1, null), (null, 1), f.a from t f where a = null or a in (null) or a in (1, null)
select ifnull(null, 1), nullif(1, null) from t
select a is null, null is null, not null, null and null from t
create table v1 (a int not null, b int null, c int default null, d int default -1, e varchar(5) not null default '')
insert into u (a, b) values (null, 1), (2, null)
insert into u values (-1, +2, 'x'), (- 3, 4, 'y')
insert into u values (1, 2, 'x') on duplicate key update b = -1, c = null
select count( * ), count( distinct a ), max(a) - min(a) from t
select a from t where date(c) = '2000-01-01' and time(c) = '1' and year(c) = 2000 and month(c) = 1 and second(c) = 3
select int, integer from t
select character_length(c), char_length(c), char(65), charset(c) from t
select cast(a as unsigned integer), cast(a as signed int), cast(a as dec(5,1)), cast(c as character(5)) from t
select a from t where c = 'x' collate utf8mb4_bin and binary c = 'y'
select interval 5 day + c, c - interval 1 month, c + interval 3 minute from t
select 1 /*! + 2 */ + 3
select utc_timestamp(3), now(6), curdate(), curtime(), sysdate(), current_date(), localtime() from t
select @@global.sql_mode, @@session.sql_mode, @@local.sql_mode, @@max_connections
select a <> b, a != b, a <=> b, a >= b, a <= b from t
select a from t t1 where exists (select * from u where u.a = t1.a and u.b in (1, 2))
select a and b, a && b, a or b, a xor b, not a, ! a from t
select 'a' like 'b' escape 'c', c sounds like 'x' from t
delete from t where a in (1, 2, 3) and (b, d) in ((1, 2), (3, 4)) or b = 7
select * from t where (a, b) in ((1, 2)) or a in ((1), (2)) or (a, b) = (1, 2)
select t.*, u.* from t, u where t.a = u.a
select sql_no_cache sql_calc_found_rows straight_join a from t
select substr(c, 1), mid(c, 1, 2), substring(c, 3) from t
select session_user(), system_user(), user(), current_user(), current_user
show fields from t
show index from t
show keys from t
show indexes from t
show schemas
explain format=json select * from t where a = 1
desc select 1
create table v2 (a tinyint, b int1, c smallint, d int2, e mediumint, f int3, g middleint, h bigint, i int8, j float4, k float8, l double, m real, n numeric(5,2), o fixed(3), p bool, q char, r varchar(3), s long, t nchar(2), u nvarchar(3))
create table v3 (a int) engine=innodb default charset=utf8mb4 comment='x' auto_increment=5
create unique index k on t (b desc, c(3))
alter table t modify column b bigint not null default 7, rename to tt
rename table t to v
truncate table t
drop table if exists t, u
savepoint x
rollback to savepoint x
start transaction with consistent snapshot
set @@session.autocommit = 0, @@global.max_connections = 100, names utf8mb4
set character_set_results = null
kill connection 7
do sleep(0), 1
lock tables t write, u as x read
select a from t where a = 1 for share skip locked
select a from t lock in share mode
values row(1,'a'), row(2,'b')
select json_object('a', 1, 'b', 2), json_array(1, 2, 3) from t
