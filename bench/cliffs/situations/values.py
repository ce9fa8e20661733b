"""Values of up to a MiB, by the MiB."""
from work import case

# Bytes that a cell's statements pass over before it looks whether they were enough.
TOTAL = 256 << 20
# Seconds of processor time that a cell measures at least. In less, the memory that a server takes
# for its first statements may cost more than the rest.
MEASURED_S = 0.2
# Statements before that.
WARM_UP = 10
SIZES = [64 << 10, 256 << 10, 1 << 20]


def large_values(work):
    """Four rows of `size` bytes each."""
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, v LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci)",
                 "CREATE TABLE copies LIKE t")
    for n in range(4):
        word = "".join(chr(97 + (n * 7 + i * i) % 26) for i in range(1000))
        work.execute(f"INSERT INTO t VALUES ({n}, {n}, LEFT(REPEAT('{word} ', {work.size // 1000 + 1}), {work.size}))")
    work.execute("INSERT INTO copies SELECT * FROM t",
                 "SET @v = (SELECT CONCAT(v, 'x') FROM t WHERE id = 1) COLLATE utf8mb4_general_ci")


def passes(work):
    """How often four values are read, and how many MiB that is."""
    times = max(1, TOTAL // (4 * work.size))
    return times, times * 4 * work.size / (1 << 20)


def statement(name, about, sql):
    @case(name, about, "a MiB", SIZES, large_values, compared=True)
    def run(work):
        times, mib = passes(work)
        work.execute(*[sql] * WARM_UP)
        measured_mib = 0
        while (work.measured_cpu or 0) < MEASURED_S:
            work.measure(*[sql] * times)
            measured_mib += mib
        return measured_mib
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
    times, mib = passes(work)
    for _ in range(times):
        work.execute("TRUNCATE copies")
        work.measure("INSERT INTO copies SELECT * FROM t")
    return mib
