//! Opening a key as a filter that answers, and as items' bytes.

use super::errors::Error;
use crate::bloom::chain::Chain;
use crate::bloom::layer::GROUP;
use crate::codec::filter::Filter;
use crate::host::Str;
use crate::host::key::{Key, KeyMut};
use crate::keytype::FILTER;

/// The filter of a key opened for reading; none if the key is missing.
///
/// # Errors
/// [`Error::WrongType`], and [`Error::Loading`] if only a part of it has come.
#[inline]
pub fn filter<'k>(key: &'k Key<'_>) -> Result<Option<&'k Chain>, Error> {
    match key.get(&FILTER)? {
        None => Ok(None),
        Some(Filter::Whole(chain)) => Ok(Some(chain)),
        Some(Filter::Partial(_)) => Err(Error::Loading),
    }
}

/// As [`filter`], of a key opened for writing.
///
/// # Errors
/// As [`filter`].
#[inline]
pub fn filter_mut<'k>(key: &'k mut KeyMut<'_>) -> Result<Option<&'k mut Chain>, Error> {
    key.get_mut(&FILTER)?.map(|filter| filter.whole_mut().ok_or(Error::Loading)).transpose()
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
