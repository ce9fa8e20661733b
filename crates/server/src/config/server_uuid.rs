//! The UUID of the server, which names its transactions. As in MySQL it is made at the first start,
//! and kept in the file auto.cnf of the data directory.

use std::io;
use std::path::Path;

const FILE: &str = "auto.cnf";
const KEY: &str = "server-uuid=";

/// Reads the UUID, or makes one.
///
/// # Errors
/// The file cannot be read or written, or has no UUID.
pub fn server_uuid(datadir: &Path) -> io::Result<String> {
    let path = datadir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(KEY));
            let uuid = line.map(str::trim).filter(|uuid| is_uuid(uuid));
            uuid.map(str::to_owned).ok_or_else(|| {
                let what = format!("{} has no line {KEY}UUID", path.display());
                io::Error::new(io::ErrorKind::InvalidData, what)
            })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let uuid = random_uuid()?;
            let temporary = datadir.join("auto.cnf.tmp");
            let file = std::fs::File::create(&temporary)?;
            io::Write::write_all(&mut &file, format!("[auto]\n{KEY}{uuid}\n").as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)?;
            std::fs::File::open(datadir)?.sync_all()?;
            Ok(uuid)
        }
        Err(e) => Err(e),
    }
}

fn is_uuid(text: &str) -> bool {
    let hyphen = |i: usize| matches!(i, 8 | 13 | 18 | 23);
    let fits = |(i, b): (usize, u8)| match hyphen(i) {
        true => b == b'-',
        false => b.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// A UUID of version 4.
fn random_uuid() -> io::Result<String> {
    let mut b = [0u8; 16];
    aws_lc_rs::rand::fill(&mut b).map_err(|_| io::Error::other("no random bytes"))?;
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (i, byte) in b.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_uuid_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let first = server_uuid(dir.path()).unwrap();
        assert!(is_uuid(&first));
        assert_eq!(server_uuid(dir.path()).unwrap(), first);
        std::fs::write(dir.path().join(FILE), "[auto]\n").unwrap();
        assert!(server_uuid(dir.path()).is_err());
    }
}
