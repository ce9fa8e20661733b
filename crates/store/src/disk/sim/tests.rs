use super::*;

#[test]
fn crash_keeps_synced_bytes_only() {
    let (mut lost, mut kept, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimDisk::new();
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(0, &[1; 2048]).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir().unwrap();
        file.write_at(0, &[2; 2048]).unwrap();
        file.write_at(512, &[3; 512]).unwrap();
        let after = disk.crash(seed);
        assert!(file.write_at(0, b"x").is_err(), "the old disk is dead");
        let mut bytes = [0u8; 2048];
        after
            .open("a", OpenMode::Existing)
            .unwrap()
            .read_at(0, &mut bytes)
            .unwrap();
        let sectors: Vec<u8> = bytes.chunks(512).map(|s| s[0]).collect();
        assert!(
            bytes.chunks(512).all(|s| s.iter().all(|b| *b == s[0])),
            "D1: sectors are not torn"
        );
        assert!(
            sectors
                .iter()
                .enumerate()
                .all(|(i, s)| matches!((i, s), (1, 1..=3) | (_, 1..=2))),
            "{sectors:?}"
        );
        match sectors.as_slice() {
            [1, 1, 1, 1] => lost += 1,
            [2, 3, 2, 2] => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(
        lost > 5 && kept > 5 && torn > 5,
        "lost {lost}, kept {kept}, torn {torn}"
    );
}

#[test]
fn crash_undoes_unsynced_name_changes() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let disk = SimDisk::new();
        disk.open("old", OpenMode::CreateNew).unwrap();
        disk.sync_dir().unwrap();
        disk.open("new", OpenMode::CreateNew).unwrap();
        disk.rename("new", "final").unwrap();
        disk.remove("old").unwrap();
        seen.insert(disk.crash(seed).list("").unwrap());
    }
    let expected: Vec<Vec<&str>> = vec![
        vec!["final"],
        vec!["final", "old"],
        vec!["new", "old"],
        vec!["old"],
    ];
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        expected,
        "exactly the prefixes of the changes"
    );
}

#[test]
fn disk_injects_faults_and_limits() {
    let disk = SimDisk::new();
    disk.inject(FaultOn::Write, "a", 1, 1, io::ErrorKind::Other);
    disk.set_capacity(Some(1000));
    let file = disk.open("abc", OpenMode::CreateNew).unwrap();
    file.write_at(0, b"x").unwrap();
    assert!(file.write_at(0, b"x").is_err());
    file.write_at(0, b"x").unwrap();
    assert_eq!(
        file.write_at(0, &[0; 2000]).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    disk.fail_power_after(1);
    file.write_at(0, b"x").unwrap();
    assert!(file.sync_data().is_err());
    assert!(disk.is_dead() && file.len().is_err());
}
