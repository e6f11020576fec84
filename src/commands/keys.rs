//! Opening a key as a filter that answers, and as items' bytes.

use super::errors::Error;
use crate::bloom::layer::GROUP;
use crate::bloom::whole::Whole;
use crate::host::Str;
use crate::host::key::{Key, KeyMut};
use crate::keytype::FILTERS;

/// The filter of a key opened for reading; none if the key is missing.
///
/// # Errors
/// [`Error::WrongType`], and [`Error::Loading`] if only a part of it has come.
#[inline]
pub fn filter<'k>(key: &'k Key<'_>) -> Result<Option<&'k Whole>, Error> {
    key.get(&FILTERS)?.map(|filter| filter.whole().ok_or(Error::Loading)).transpose()
}

/// As [`filter`], of a key opened for writing, to be added to. What is `trusted` may add to a filter that RedisBloom takes
/// for whole.
///
/// # Errors
/// As [`filter`].
#[inline]
pub fn filter_mut<'k>(key: &'k mut KeyMut<'_>, trusted: impl FnOnce() -> bool) -> Result<Option<&'k mut Whole>, Error> {
    key.get_mut(&FILTERS)?.map(|filter| filter.whole_mut(trusted).ok_or(Error::Loading)).transpose()
}

/// The bytes of the first [`GROUP`] items; empty where there are fewer.
#[inline]
pub fn bytes_of<'a>(items: &[Str<'a>]) -> [&'a [u8]; GROUP] {
    let mut bytes: [&[u8]; GROUP] = [&[]; GROUP];
    for (bytes, item) in bytes.iter_mut().zip(items) {
        *bytes = item.bytes();
    }
    bytes
}
