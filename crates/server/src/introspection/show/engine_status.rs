//! SHOW ENGINE INNODB STATUS, in the shape of InnoDB's, which tools take apart. What Nfold does not
//! have (a change buffer, an adaptive hash index, I/O threads) is zero.

use std::fmt::Write;

use nfold_engine::Engine;
use nfold_observe::StatusCounter;
use nfold_types::wire::display_text;
use nfold_types::{ColumnType, TypeKind, ValueRef};

use crate::session::Session;

const FRAME: &str = "=====================================";

/// The heading of a section.
fn heading(name: &str, out: &mut String) {
    let line = "-".repeat(name.len());
    _ = writeln!(out, "{line}\n{name}\n{line}");
}

impl Session {
    pub(super) fn innodb_status(&self) -> String {
        let engine = &self.server.engine;
        let seconds = self.server.started.elapsed().as_secs().max(1);
        let mut out = format!(
            "\n{FRAME}\n{} 0 INNODB MONITOR OUTPUT\n{FRAME}\n",
            self.clock()
        );
        _ = writeln!(
            out,
            "Per second averages calculated from the last {seconds} seconds"
        );
        heading("BACKGROUND THREAD", &mut out);
        _ = writeln!(
            out,
            "srv_master_thread loops: 0 srv_active, 0 srv_shutdown, 0 srv_idle"
        );
        out.push_str("srv_master_thread log flush and writes: 0\n");
        semaphores(engine, &mut out);
        out.push_str(&self.transactions_text());
        files(engine, seconds, &mut out);
        out.push_str(NO_CHANGE_BUFFER);
        log(engine, seconds, &mut out);
        buffer_pool(engine, seconds, &mut out);
        self.row_operations(seconds, &mut out);
        heading("COUNTERS", &mut out);
        for (name, value) in self.server.status_values(None) {
            _ = writeln!(out, "{name} {value}");
        }
        _ = writeln!(
            out,
            "{}\nEND OF INNODB MONITOR OUTPUT\n{}",
            &"-".repeat(28),
            &"=".repeat(28)
        );
        out
    }

    /// The date and time in the session's time zone.
    fn clock(&self) -> String {
        use nfold_exec::SessionEnv;
        let zone = self.env.time_zone();
        let local = zone.to_local(self.env.now());
        let mut text = Vec::new();
        if let Some(at) = local {
            let ty = ColumnType::new(TypeKind::DateTime(0));
            display_text(ValueRef::DateTime(at), &ty, zone, &mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn transactions_text(&self) -> String {
        let connections = self.server.registry.processes();
        let of_session = |id: u64, out: &mut String| {
            let Some(p) = connections.iter().find(|p| u64::from(p.id) == id) else {
                return;
            };
            let (host, user) = (&p.identity.host, &p.identity.user);
            out.push_str(&format!("MySQL thread id {id} {host} {user}\n"));
            if let Some(text) = &p.text {
                out.push_str(&String::from_utf8_lossy(text));
                out.push('\n');
            }
        };
        self.server.engine.transaction_report(&of_session)
    }

    fn row_operations(&self, seconds: u64, out: &mut String) {
        let counted = self.server.session_counters.values();
        let running = self.server.counters.get().map_or(0, |c| c.totals().running);
        heading("ROW OPERATIONS", out);
        _ = writeln!(out, "{running} queries inside InnoDB, 0 queries in queue");
        let views = self.server.engine.transactions().len();
        _ = writeln!(out, "{views} read views open inside InnoDB");
        _ = writeln!(
            out,
            "Process ID={}, Main thread ID=0 , state=sleeping",
            std::process::id()
        );
        let (inserts, updates, deletes) = (
            counted.get(StatusCounter::HandlerWrite),
            counted.get(StatusCounter::HandlerUpdate),
            counted.get(StatusCounter::HandlerDelete),
        );
        let reads: u64 = counted
            .iter()
            .filter(|(c, _)| c.starts_with("Handler_read"))
            .map(|(_, n)| n)
            .sum();
        _ = writeln!(
            out,
            "Number of rows inserted {inserts}, updated {updates}, deleted {deletes}, read {reads}"
        );
        let rate = |n: u64| n as f64 / seconds as f64;
        _ = writeln!(
            out,
            "{:.2} inserts/s, {:.2} updates/s, {:.2} deletes/s, {:.2} reads/s",
            rate(inserts),
            rate(updates),
            rate(deletes),
            rate(reads)
        );
    }
}

fn semaphores(engine: &Engine, out: &mut String) {
    let s = engine.store_status();
    heading("SEMAPHORES", out);
    let waits = s.latch_waits;
    _ = writeln!(out, "OS WAIT ARRAY INFO: reservation count {waits}");
    _ = writeln!(out, "OS WAIT ARRAY INFO: signal count {waits}");
    _ = writeln!(out, "RW-shared spins 0, rounds 0, OS waits 0");
    _ = writeln!(out, "RW-excl spins 0, rounds 0, OS waits {waits}");
    _ = writeln!(out, "RW-sx spins 0, rounds 0, OS waits 0");
    out.push_str("Spin rounds per wait: 0.00 RW-shared, 0.00 RW-excl, 0.00 RW-sx\n");
}

fn files(engine: &Engine, seconds: u64, out: &mut String) {
    let s = engine.store_status();
    heading("FILE I/O", out);
    out.push_str("Pending normal aio reads: [0] , aio writes: [0] ,\n ibuf aio reads:\n");
    out.push_str("Pending flushes (fsync) log: 0; buffer pool: 0\n");
    let writes = s.pages_written + s.log_writes;
    let syncs = s.log_syncs;
    _ = writeln!(
        out,
        "{} OS file reads, {writes} OS file writes, {syncs} OS fsyncs",
        s.reads
    );
    let rate = |n: u64| n as f64 / seconds as f64;
    let bytes = s.pages_read * 16_384 / s.reads.max(1);
    _ = writeln!(
        out,
        "{:.2} reads/s, {bytes} avg bytes/read, {:.2} writes/s, {:.2} fsyncs/s",
        rate(s.reads),
        rate(writes),
        rate(syncs)
    );
}

const NO_CHANGE_BUFFER: &str = "\
-------------------------------------
INSERT BUFFER AND ADAPTIVE HASH INDEX
-------------------------------------
Ibuf: size 1, free list len 0, seg size 2, 0 merges
merged operations:
 insert 0, delete mark 0, delete 0
discarded operations:
 insert 0, delete mark 0, delete 0
Hash table size 0, node heap has 0 buffer(s)
0.00 hash searches/s, 0.00 non-hash searches/s
";

fn log(engine: &Engine, seconds: u64, out: &mut String) {
    let s = engine.store_status();
    heading("LOG", out);
    for (name, lsn) in [
        ("Log sequence number", s.horizon_lsn),
        ("Log buffer assigned up to", s.horizon_lsn),
        ("Log buffer completed up to", s.horizon_lsn),
        ("Log written up to", s.durable_lsn),
        ("Log flushed up to", s.durable_lsn),
        ("Added dirty pages up to", s.horizon_lsn),
        ("Pages flushed up to", s.checkpoint_lsn),
        ("Last checkpoint at", s.checkpoint_lsn),
    ] {
        _ = writeln!(out, "{name:<28} {lsn}");
    }
    let rate = s.log_writes as f64 / seconds as f64;
    _ = writeln!(
        out,
        "{} log i/o's done, {rate:.2} log i/o's/second",
        s.log_writes
    );
}

fn buffer_pool(engine: &Engine, seconds: u64, out: &mut String) {
    let s = engine.store_status();
    heading("BUFFER POOL AND MEMORY", out);
    let used = s.pool_pages_total.saturating_sub(s.pool_pages_free);
    _ = writeln!(
        out,
        "Total large memory allocated {}",
        s.pool_pages_total * 16_384
    );
    out.push_str("Dictionary memory allocated 0\n");
    _ = writeln!(out, "Buffer pool size   {}", s.pool_pages_total);
    _ = writeln!(out, "Free buffers       {}", s.pool_pages_free);
    _ = writeln!(out, "Database pages     {used}");
    _ = writeln!(out, "Old database pages 0");
    _ = writeln!(out, "Modified db pages  {}", s.pool_pages_dirty);
    out.push_str("Pending reads      0\n");
    out.push_str("Pending writes: LRU 0, flush list 0, single page 0\n");
    out.push_str("Pages made young 0, not young 0\n0.00 youngs/s, 0.00 non-youngs/s\n");
    let (read, created, written) = (s.pages_read, s.pages_created, s.pages_written);
    _ = writeln!(
        out,
        "Pages read {read}, created {created}, written {written}"
    );
    let rate = |n: u64| n as f64 / seconds as f64;
    _ = writeln!(
        out,
        "{:.2} reads/s, {:.2} creates/s, {:.2} writes/s",
        rate(read),
        rate(created),
        rate(written)
    );
    out.push_str("No buffer pool page gets since the last printout\n");
    _ = writeln!(
        out,
        "Pages read ahead {:.2}/s, evicted without access 0.00/s, Random read ahead 0.00/s",
        rate(s.read_ahead)
    );
    _ = writeln!(out, "LRU len: {used}, unzip_LRU len: 0");
    out.push_str("I/O sum[0]:cur[0], unzip sum[0]:cur[0]\n");
}
