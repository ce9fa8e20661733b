//! The key of a lock queue in its shard, `[index id, big-endian][tag][key]`: as it is stored
//! ([`QueueKey`]), and as a request encodes it ([`KeyBuf`]).

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// The maximum length of a key that needs no allocation.
const INLINE_BYTES: usize = 30;

/// An immutable byte string. A transaction that locks a million rows copies two of them a row, so
/// copying a short one moves 32 bytes.
#[derive(Clone)]
pub(super) enum QueueKey {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

const _: () = assert!(size_of::<QueueKey>() == 32);

impl From<&[u8]> for QueueKey {
    #[inline]
    fn from(key: &[u8]) -> QueueKey {
        if key.len() > INLINE_BYTES {
            return QueueKey::Heap(key.into());
        }
        let mut bytes = [0; INLINE_BYTES];
        bytes[..key.len()].copy_from_slice(key);
        QueueKey::Inline {
            len: key.len() as u8,
            bytes,
        }
    }
}

impl Deref for QueueKey {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            QueueKey::Inline { len, bytes } => &bytes[..usize::from(*len)],
            QueueKey::Heap(key) => key,
        }
    }
}

impl Borrow<[u8]> for QueueKey {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for QueueKey {
    #[inline]
    fn eq(&self, other: &QueueKey) -> bool {
        **self == **other
    }
}

impl Eq for QueueKey {}

/// As the byte string itself, because maps find a `QueueKey` by one.
impl Hash for QueueKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// The maximum length of an encoded key that needs no allocation.
const STACK_BYTES: usize = 128;
/// Where the row's key begins.
pub(super) const KEY_AT: usize = 9;

/// The key of a request, on the stack unless it is long.
pub(super) enum KeyBuf {
    Short {
        len: usize,
        bytes: [u8; STACK_BYTES],
    },
    Long(Vec<u8>),
}

impl KeyBuf {
    #[inline]
    pub fn new(index: u64, tag: u8, key: &[u8]) -> KeyBuf {
        let len = KEY_AT + key.len();
        if len > STACK_BYTES {
            return KeyBuf::long(index, tag, key);
        }
        let mut bytes = [0; STACK_BYTES];
        bytes[..KEY_AT - 1].copy_from_slice(&index.to_be_bytes());
        bytes[KEY_AT - 1] = tag;
        bytes[KEY_AT..len].copy_from_slice(key);
        KeyBuf::Short { len, bytes }
    }

    #[cold]
    fn long(index: u64, tag: u8, key: &[u8]) -> KeyBuf {
        KeyBuf::Long([&index.to_be_bytes(), &[tag][..], key].concat())
    }
}

impl Deref for KeyBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            KeyBuf::Short { len, bytes } => &bytes[..*len],
            KeyBuf::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::FxHashMap;

    #[test]
    fn queue_keys_of_all_lengths_are_found_by_bytes() {
        let bytes: Vec<u8> = (0..2 * INLINE_BYTES as u8).collect();
        let mut map: FxHashMap<QueueKey, usize> = FxHashMap::default();
        for len in 0..=bytes.len() {
            map.insert(bytes[..len].into(), len);
        }
        for len in 0..=bytes.len() {
            assert_eq!(map.get(&bytes[..len]), Some(&len));
            let key = QueueKey::from(&bytes[..len]);
            assert_eq!(*key.clone(), bytes[..len]);
            assert!(key == key.clone() && key != bytes[1..].into());
        }
    }

    #[test]
    fn encoded_keys_of_all_lengths_have_one_layout() {
        let key: Vec<u8> = (0..250).collect();
        for len in 0..key.len() {
            let encoded = KeyBuf::new(7, 1, &key[..len]);
            assert_eq!(encoded[..KEY_AT], [0, 0, 0, 0, 0, 0, 0, 7, 1]);
            assert_eq!(encoded[KEY_AT..], key[..len]);
        }
    }
}
