//! Damaged files: a flipped byte in each kind of file, truncated files, another format version,
//! redo that does not apply. The error names the damaged file or page, everything else works, and
//! no data is lost silently.

use nfold_store::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LOG: u64 = 256 << 10;
const PAGES: usize = 30;

fn options(io_threads: usize, doublewrite: bool) -> StoreOptions {
    StoreOptions {
        pool_bytes: 512 * PAGE_SIZE as u64,
        log_bytes: LOG,
        log_buffer_bytes: 1 << 16,
        doublewrite,
        io_threads,
        fatal: Some(Arc::new(|message| {
            std::panic::resume_unwind(Box::new(message.to_string()))
        })),
        ..StoreOptions::default()
    }
}

/// Operation 0x20 copies the payload to offset 128 of the page. It fails for one chosen page.
struct Put(AtomicU64);

impl RedoHandler for Put {
    fn apply(&self, _: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        if u64::from(page.id().page) == self.0.load(Ordering::Relaxed) {
            return Err(page.corrupt("made to fail"));
        }
        page.write(128, payload);
        Ok(())
    }
}

fn try_open(
    disk: &SimDisk,
    options: StoreOptions,
    failing: u64,
) -> Result<(Arc<Store>, RecoveryReport), StoreError> {
    let put = Arc::new(Put(AtomicU64::new(failing)));
    Store::open(options, Arc::new(disk.clone()), put, &|_| {})
}

fn read(store: &Store, id: PageId) -> Result<u64, StoreError> {
    loop {
        match store.read(id) {
            Ok(page) => {
                let value = page.u64(128);
                if page.validate() {
                    return Ok(value);
                }
            }
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => return Err(e),
        }
    }
}

struct World {
    store: Arc<Store>,
    disk: SimDisk,
    space: SpaceId,
    ids: Vec<PageId>,
    values: Vec<u64>,
    next: u64,
}

impl World {
    fn new(doublewrite: bool) -> World {
        let disk = SimDisk::new();
        let (store, _) = try_open(&disk, options(0, doublewrite), 0).unwrap();
        let space = store.create_space("t").unwrap();
        let ids: Vec<PageId> = (0..PAGES)
            .map(|_| {
                let mut mtr = store.mtr();
                mtr.reserve(100, space, 1).unwrap();
                let p = mtr.alloc_page(space, PageType::USER, 0, 1);
                let id = mtr.id(p);
                mtr.commit();
                id
            })
            .collect();
        let values = vec![0; PAGES];
        World {
            store,
            disk,
            space,
            ids,
            values,
            next: 1,
        }
    }

    /// Changes two pages in each of `count` mini-transactions of some 500 bytes, and makes them
    /// durable.
    fn write(&mut self, count: usize) {
        for _ in 0..count {
            let mut mtr = self.store.mtr();
            mtr.reserve(700, self.space, 0).unwrap();
            for at in [
                self.next as usize % PAGES,
                (self.next as usize * 7 + 1) % PAGES,
            ] {
                let p = mtr.latch(self.ids[at]).unwrap();
                let mut payload = [9u8; 230];
                payload[..8].copy_from_slice(&self.next.to_le_bytes());
                mtr.op(p, 0x20, &payload);
                self.values[at] = self.next;
            }
            mtr.commit();
            self.next += 1;
        }
        self.store.wait_durable(self.store.horizon().load());
    }

    fn all_there(&self, store: &Store) -> bool {
        store.open_space(self.space, "t").unwrap();
        let found = self.ids.iter().map(|id| read(store, *id).unwrap());
        found.eq(self.values.iter().copied())
    }
}

/// Damage must be reported without a panic.
fn no_panic<T>(f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).expect("damage is reported without a panic")
}

#[test]
fn damaged_control_block_loses_nothing_silently() {
    // Without and with a lap of the log since the older block was written, and with a restart,
    // which begins a new generation.
    for (writes, checkpoints, restart) in [(50, 1, false), (300, 6, false), (40, 1, true)] {
        let mut world = World::new(true);
        for _ in 0..checkpoints {
            world.write(writes);
            world.store.checkpoint().unwrap();
        }
        if restart {
            world.store.shutdown().unwrap();
            world.disk = world.disk.kill();
            world.store = try_open(&world.disk, options(0, true), 0).unwrap().0;
            world.store.open_space(world.space, "t").unwrap();
        }
        world.write(writes);
        let (mut whole, mut refused) = (0, 0);
        for slot in [0, 4096] {
            for at in [2, 5, 10, 20, 30, 100] {
                let image = world.disk.kill();
                assert!(image.flip_bit("nfold.control", slot + at));
                match no_panic(|| try_open(&image, options(0, true), 0)) {
                    Ok((store, _)) => {
                        assert!(world.all_there(&store), "slot {slot}");
                        whole += 1;
                    }
                    Err(e) => {
                        let e = e.to_string();
                        assert!(e.contains("nfold.control") && e.contains("offset"), "{e}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(
            whole >= 6,
            "damage to the older block does no harm: {whole}"
        );
        if checkpoints > 1 || restart {
            assert_eq!(
                refused, 6,
                "damage to the newer block is detected, because its log is overwritten"
            );
        }
    }
}

#[test]
fn damaged_log_is_not_mistaken_for_its_end() {
    for flush in [false, true] {
        let mut world = World::new(true);
        world.write(200);
        world.store.checkpoint().unwrap();
        world.write(300);
        if flush {
            // Pages on disk show how far the log went, but the checkpoint after them is missing.
            world.disk.inject(
                FaultOn::Write,
                "nfold.control",
                0,
                1,
                std::io::ErrorKind::Other,
            );
            let _ = catch_unwind(AssertUnwindSafe(|| world.store.checkpoint()));
        }
        let end = world.store.horizon().load();
        let last_block = end / 4064;
        let blocks = LOG / 4096;
        let (mut harmless, mut reported, mut refused, mut tail) = (0, 0, 0, 0);
        for at in (0..LOG).step_by(1500) {
            let image = world.disk.kill();
            let (file, off) = (at / (LOG / 2), at % (LOG / 2));
            assert!(image.flip_bit(&format!("redo.{file:04}"), off));
            match no_panic(|| try_open(&image, options(0, true), 0)) {
                Ok((store, report)) => {
                    if world.all_there(&store) {
                        harmless += 1;
                    } else if let Some(damage) = report.log_damage {
                        assert!(damage.contains("redo.") && damage.contains("offset"));
                        reported += 1;
                    } else {
                        assert_eq!(
                            at / 4096,
                            last_block % blocks,
                            "only damage in the last block looks like a crash"
                        );
                        tail += 1;
                    }
                }
                Err(e) => {
                    let e = e.to_string();
                    assert!(e.contains("redo.") && e.contains("offset"), "{e}");
                    refused += 1;
                }
            }
        }
        println!(
            "flush {flush}: {harmless} harmless, {reported} reported, {refused} refused, {tail} in the tail"
        );
        assert!(harmless > 20 && tail <= 4);
        if flush {
            assert!(
                refused > 20 && reported == 0,
                "all damage is proven: {refused} {reported}"
            );
        } else {
            assert!(reported > 20, "{reported}");
        }
    }
}

#[test]
fn log_synced_before_the_last_write_is_not_lost_silently() {
    let mut world = World::new(true);
    world.write(200);
    let from = world.store.checkpoint().unwrap();
    for _ in 0..40 {
        world.write(5);
    }
    let known = world.store.durable_lsn();
    world.write(1);
    let end = world.store.horizon().load();
    let (first, last) = (from / 4064, end / 4064);
    assert!(last > first + 20 && known / 4064 == last, "{known} {end}");
    let half = LOG / 2 / 4096;
    let (mut whole, mut tail, mut refused) = (0, 0, 0);
    // All bytes of the last two blocks, and some bytes of the others.
    let places = (first * 4096..(last - 1) * 4096).step_by(811);
    for at in places.chain(((last - 1) * 4096..(last + 1) * 4096).step_by(31)) {
        let (sequence, off) = (at / 4096 % (2 * half), at % 4096);
        let image = world.disk.kill();
        let file = format!("redo.{:04}", sequence / half);
        assert!(image.flip_bit(&file, sequence % half * 4096 + off));
        match no_panic(|| try_open(&image, options(0, true), 0)) {
            Ok((store, _)) if world.all_there(&store) => whole += 1,
            Ok((_, report)) => {
                assert!(
                    report.end_lsn >= known,
                    "byte {off} of block {sequence}: {report:?}"
                );
                tail += 1;
            }
            Err(e) => {
                let e = e.to_string();
                assert!(e.contains("redo.") && e.contains("offset"), "{e}");
                refused += 1;
            }
        }
    }
    println!("{whole} harmless, {refused} refused, {tail} in what the last write appended");
    assert!(refused > 100 && tail > 0, "{refused} {tail}");
}

#[test]
fn damaged_doublewrite_file_does_no_harm() {
    let mut world = World::new(true);
    world.write(200);
    world.store.checkpoint().unwrap();
    world.write(20);
    let file = world
        .disk
        .open("nfold.doublewrite", OpenMode::Existing)
        .unwrap();
    let len = file.len().unwrap();
    for at in (0..len).step_by(len as usize / 40) {
        let image = world.disk.kill();
        assert!(image.flip_bit("nfold.doublewrite", at));
        let (store, _) = no_panic(|| try_open(&image, options(0, true), 0)).unwrap();
        assert!(world.all_there(&store));
    }
}

#[test]
fn torn_page_is_repaired_and_damaged_page_is_named() {
    let mut world = World::new(true);
    world.write(200);
    world.store.checkpoint().unwrap();
    let torn = world.ids[3];
    let at = u64::from(torn.page) * PAGE_SIZE as u64;
    let image = world.disk.kill();
    assert!(image.flip_bit("t.nfd", at + 7000));
    let (store, report) = try_open(&image, options(0, true), 0).unwrap();
    assert_eq!(report.repaired_pages, 1);
    assert!(world.all_there(&store));
    // Without the doublewrite file, reads of that page fail, and all others work.
    for off in [0, 4, 9, 17, 40, 130, 16_000] {
        let image = world.disk.kill();
        assert!(image.flip_bit("t.nfd", at + off));
        image.remove("nfold.doublewrite").unwrap();
        let (store, _) = try_open(&image, options(0, false), 0).unwrap();
        store.open_space(world.space, "t").unwrap();
        for (id, value) in world.ids.iter().zip(&world.values) {
            match no_panic(|| read(&store, *id)) {
                Ok(found) => assert!(found == *value && *id != torn),
                Err(StoreError::Corrupt { page, .. }) => assert!(page == torn && *id == torn),
                Err(e) => panic!("{e}"),
            }
        }
    }
}

#[test]
fn damaged_space_header_affects_only_that_space() {
    let mut world = World::new(false);
    let other = world.store.create_space("other").unwrap();
    world.write(50);
    world.store.shutdown().unwrap();
    for off in [0, 8, 17, 64, 70, 600] {
        let image = world.disk.kill();
        assert!(image.flip_bit("other.nfd", off));
        let (store, _) = no_panic(|| try_open(&image, options(0, false), 0)).unwrap();
        assert!(world.all_there(&store));
        let e = no_panic(|| store.open_space(other, "other")).unwrap_err();
        let e = e.to_string();
        assert!(
            e.contains("other.nfd") || e.contains(&format!("space {other}")),
            "{e}"
        );
    }
}

#[test]
fn truncated_files_are_named() {
    let mut world = World::new(true);
    world.write(200);
    world.store.shutdown().unwrap();
    let cut = |name: &str, part: u64| {
        let image = world.disk.kill();
        let file = image.open(name, OpenMode::Existing).unwrap();
        file.set_len(file.len().unwrap() * part / 4).unwrap();
        image
    };
    for part in 0..4 {
        for name in ["nfold.control", "redo.0000", "redo.0001"] {
            let image = cut(name, part);
            let e = no_panic(|| try_open(&image, options(0, true), 0).map(|_| ()));
            let e = e.unwrap_err().to_string();
            assert!(e.contains(name) && e.contains("cut off at offset"), "{e}");
        }
        let image = cut("nfold.doublewrite", part);
        let (store, _) = no_panic(|| try_open(&image, options(0, true), 0)).unwrap();
        assert!(world.all_there(&store));
        let image = world.disk.kill();
        image.remove("nfold.doublewrite").unwrap(); // It would repair them.
        let file = image.open("t.nfd", OpenMode::Existing).unwrap();
        file.set_len(part * 8 * PAGE_SIZE as u64 + 100).unwrap();
        let (store, _) = no_panic(|| try_open(&image, options(0, false), 0)).unwrap();
        let opened = no_panic(|| store.open_space(world.space, "t"));
        if part == 0 {
            let e = opened.unwrap_err().to_string();
            assert!(e.contains("t.nfd"), "{e}");
            continue;
        }
        opened.unwrap();
        let results: Vec<_> = world
            .ids
            .iter()
            .map(|id| no_panic(|| read(&store, *id)))
            .collect();
        assert!(results.first().unwrap().is_ok() && results.last().unwrap().is_err());
        for (found, value) in results.iter().zip(&world.values) {
            match found {
                Ok(found) => assert_eq!(found, value),
                Err(e) => assert!(e.to_string().contains("space 1"), "{e}"),
            }
        }
    }
}

#[test]
fn other_format_version_is_rejected() {
    let world = World::new(true);
    world.store.shutdown().unwrap();
    let image = world.disk.kill();
    let file = image.open("nfold.control", OpenMode::Existing).unwrap();
    for slot in [0, 4096] {
        let mut block = vec![0; 128];
        file.read_at(slot, &mut block).unwrap();
        block[4] = 2;
        let crc = crc32c::crc32c(&block[4..]);
        block[..4].copy_from_slice(&crc.to_le_bytes());
        file.write_at(slot, &block).unwrap();
    }
    let e = no_panic(|| try_open(&image, options(0, true), 0).map(|_| ())).unwrap_err();
    let e = e.to_string();
    assert!(
        e.contains("nfold.control") && e.contains("version 2") && e.contains("version 1"),
        "{e}"
    );
}

#[test]
fn page_with_inapplicable_redo_stays_an_error() {
    for io_threads in [0, 4] {
        let mut world = World::new(true);
        world.store.checkpoint().unwrap();
        world.write(60);
        let bad = world.ids[4];
        let image = world.disk.kill();
        let (store, report) = try_open(&image, options(io_threads, true), bad.page.into()).unwrap();
        assert_eq!(report.corrupt_pages, [bad]);
        for round in 0..2 {
            store.open_space(world.space, "t").unwrap();
            for (id, value) in world.ids.iter().zip(&world.values) {
                match read(&store, *id) {
                    Ok(found) => assert!(found == *value && *id != bad, "round {round}: {id}"),
                    Err(StoreError::Corrupt { page, .. }) => assert!(page == bad && *id == bad),
                    Err(e) => panic!("{e}"),
                }
            }
        }
        store.shutdown().unwrap();
        drop(store);
        let (store, _) = try_open(&image.kill(), options(0, true), 0).unwrap();
        store.open_space(world.space, "t").unwrap();
        assert!(
            matches!(read(&store, bad), Err(StoreError::Corrupt { page, .. }) if page == bad),
            "also after a restart"
        );
    }
}

#[test]
fn parallel_recovery_equals_serial_recovery() {
    for seed in 0..12 {
        let mut world = World::new(true);
        world.write(100 + 17 * seed as usize);
        let image = world.disk.crash_image(seed);
        let copies = [image.kill(), image.kill()];
        let mut reports = Vec::new();
        for (copy, io_threads) in copies.iter().zip([0, 8]) {
            let (store, report) = try_open(copy, options(io_threads, true), 0).unwrap();
            assert!(world.all_there(&store), "seed {seed}, {io_threads} threads");
            assert!(!report.clean && report.corrupt_pages.is_empty());
            reports.push((report.end_lsn, report.redo_records));
            store.shutdown().unwrap();
        }
        assert_eq!(reports[0], reports[1]);
    }
}

/// The last block of the log is rewritten as it fills up. After a power failure it may be any
/// mixture of sectors of its last two images, and each of these contains everything that was synced
/// before. None of them has an invalid header.
#[test]
fn torn_last_block_loses_nothing_but_its_header_is_checked() {
    const BLOCK: u64 = 4096;
    const SECTOR: usize = 512;
    let mut world = World::new(true);
    world.write(100);
    let file_blocks = LOG / 2 / BLOCK;
    let place = |lsn: u64| {
        let at = lsn / 4064 % (2 * file_blocks);
        (
            format!("redo.{:04}", at / file_blocks),
            at % file_blocks * BLOCK,
        )
    };
    // Both images end in the same block, a few sectors apart.
    let (name, offset, known, old, new) = loop {
        let end = world.store.horizon().load();
        let (name, offset) = place(end);
        let file = world.disk.open(&name, OpenMode::Existing).unwrap();
        let (mut old, mut new) = (vec![0; BLOCK as usize], vec![0; BLOCK as usize]);
        file.read_at(offset, &mut old).unwrap();
        let known = world.values.clone();
        world.write(3);
        let after = world.store.horizon().load();
        if !end.is_multiple_of(4064) && end / 4064 == after / 4064 {
            file.read_at(offset, &mut new).unwrap();
            break (name, offset, known, old, new);
        }
    };
    assert!(old != new);
    let with = |block: &[u8]| {
        let image = world.disk.kill();
        let file = image.open(&name, OpenMode::Existing).unwrap();
        file.write_at(offset, block).unwrap();
        drop(file);
        image
    };
    let mut whole = 0;
    for mixture in 0..1u32 << (BLOCK as usize / SECTOR) {
        let mut block = old.clone();
        for sector in (0..BLOCK as usize / SECTOR).filter(|s| mixture >> s & 1 == 1) {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            block[range.clone()].copy_from_slice(&new[range]);
        }
        let (store, _) = no_panic(|| try_open(&with(&block), options(0, true), 0)).unwrap();
        store.open_space(world.space, "t").unwrap();
        for ((id, known), now) in world.ids.iter().zip(&known).zip(&world.values) {
            let found = read(&store, *id).unwrap();
            assert!((*known..=*now).contains(&found), "mixture {mixture}");
        }
        whole += u32::from(world.all_there(&store));
    }
    assert!(whole >= 1, "the complete new image is one of the mixtures");
    for at in 0..32 {
        let mut block = new.clone();
        block[at] ^= 1;
        let error = no_panic(|| try_open(&with(&block), options(0, true), 0).map(drop));
        let error = error.unwrap_err().to_string();
        let where_ = format!("offset {offset}");
        assert!(
            error.contains(&name) && error.contains(&where_),
            "{at}: {error}"
        );
    }
}
