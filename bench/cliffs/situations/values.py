"""Values of up to a MiB, by the MiB."""
from work import case

# Bytes of a table's values. Each statement passes over all of them, so that the client's round
# trips cost little beside them at every size.
TABLE = 4 << 20
# A cell runs its statement until it has read this many bytes, and repeats that until it has
# measured MEASURED_S.
TOTAL = 256 << 20
# Seconds of processor time that a cell measures at least. In less, the memory that a server takes
# for its first statements may cost more than the rest.
MEASURED_S = 0.2
# Statements before that.
WARM_UP = 10
SIZES = [64 << 10, 256 << 10, 1 << 20]


def large_values(work):
    """Rows of `size` bytes each."""
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, v LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci)",
                 "CREATE TABLE copies LIKE t")
    for n in range(TABLE // work.size):
        word = "".join(chr(97 + (n * 7 + i * i) % 26) for i in range(1000))
        work.execute(f"INSERT INTO t VALUES ({n}, {n}, LEFT(REPEAT('{word} ', {work.size // 1000 + 1}), {work.size}))")
    work.execute("INSERT INTO copies SELECT * FROM t",
                 "SET @v = (SELECT CONCAT(v, 'x') FROM t WHERE id = 1) COLLATE utf8mb4_general_ci")


def statement(name, about, sql):
    @case(name, about, "a MiB", SIZES, large_values, compared=True)
    def run(work):
        work.execute(*[sql] * WARM_UP)
        measured = 0
        while (work.measured_cpu or 0) < MEASURED_S:
            work.measure(*[sql] * (TOTAL // TABLE))
            measured += TOTAL
        return measured >> 20
    return run


statement("large_read", "large texts read", "SELECT v FROM t")
statement("large_concat", "UPDATE of large texts with CONCAT", "UPDATE copies SET v = CONCAT(v, 'x')")
statement("large_replace", "REPLACE of large texts by equal rows", "REPLACE INTO copies SELECT * FROM t")
statement("large_beside", "UPDATE of a number beside a large text", "UPDATE copies SET k = k + 1")
statement("large_compare", "large texts compared with a variable", "SELECT COUNT(*) FROM t WHERE v = @v")
statement("large_md5", "MD5 of large texts", "SELECT MD5(v) FROM t")
statement("large_sha1", "SHA1 of large texts", "SELECT SHA1(v) FROM t")
statement("large_sha256", "SHA2 of 256 bits of large texts", "SELECT SHA2(v, 256) FROM t")
statement("large_sha512", "SHA2 of 512 bits of large texts", "SELECT SHA2(v, 512) FROM t")
statement("large_crc32", "CRC32 of large texts", "SELECT CRC32(v) FROM t")
statement("large_compress", "COMPRESS of large texts", "SELECT LENGTH(COMPRESS(v)) FROM t")


@case("large_insert_select", "INSERT ... SELECT of large texts", "a MiB", SIZES, large_values,
      compared=True)
def large_insert_select(work):
    for _ in range(TOTAL // TABLE):
        work.execute("TRUNCATE copies")
        work.measure("INSERT INTO copies SELECT * FROM t")
    return TOTAL >> 20
