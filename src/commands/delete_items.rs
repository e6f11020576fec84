//! Deleting items: what BF.DEL and BF.MDEL share. Others are told of what changed.
//!
//! Replicas and the AOF get the items that were there, in order, as adds are sent: `add_items`.

use super::errors::Error;
use super::keys;
use crate::bloom;
use crate::bloom::chain::Chain;
use crate::bloom::geometry::Kind;
use crate::bloom::layer::GROUP;
use crate::host::key::KeyMut;
use crate::host::{Ctx, Str};
use crate::metrics;

/// Opens a key and has `delete` delete from it, reply, and tell replicas and the AOF; of a missing key, which holds nothing, it
/// gets none. Others are told if it says that something was deleted.
fn run<'a>(
    ctx: Ctx<'a>,
    name: Str<'a>,
    delete: impl FnOnce(Option<&mut Chain>) -> Result<u64, Error>,
) -> Result<(), Error> {
    // SAFETY: the only key that is open, and nothing deletes it until it is closed below.
    let mut key = unsafe { KeyMut::open(ctx, name) };
    let chain = match keys::filter_mut(&mut key, || false)? {
        None => None,
        Some(whole) => {
            Some(whole.native_mut().filter(|chain| chain.kind() == Kind::Counting).ok_or(Error::NotCounting)?)
        }
    };
    let deleted = delete(chain)?;
    metrics::ITEMS_DELETED.add(deleted);
    // Those who watch or listen are told once the key is closed: they may call commands of ours.
    drop(key);
    if deleted > 0 {
        ctx.signal_modified(name);
        ctx.notify(c"bf.del", name);
    }
    Ok(())
}

/// Deletes one item once and replies whether it was there: BF.DEL.
///
/// # Errors
/// Why it was not tried.
pub fn delete_one<'a>(ctx: Ctx<'a>, name: Str<'a>, item: Str<'a>) -> Result<(), Error> {
    run(ctx, name, |chain| {
        let was = chain.is_some_and(|chain| chain.remove(item.bytes()));
        if was {
            ctx.replicate_verbatim();
        }
        ctx.reply_bool(was);
        Ok(was.into())
    })
}

/// Deletes items, each once, and replies an array of whether they were there: BF.MDEL.
///
/// # Errors
/// Why none was tried.
pub fn delete_many<'a>(ctx: Ctx<'a>, name: Str<'a>, items: &[Str<'a>]) -> Result<(), Error> {
    run(ctx, name, |mut chain| {
        let mut deleted = Vec::new();
        // One more than the items: the key's name stands before them.
        deleted.try_reserve_exact(items.len() + 1).map_err(|_| bloom::error::Error::OutOfMemory)?;
        deleted.push(name);
        ctx.reply_array(items.len());
        for group in items.chunks(GROUP) {
            let bytes = keys::bytes_of(group);
            let bytes = bytes.get(..group.len()).unwrap_or_default();
            let was = chain.as_mut().map_or(0, |chain| chain.remove_group(bytes));
            for (i, item) in group.iter().enumerate() {
                let was = was >> i & 1 == 1;
                ctx.reply_bool(was);
                if was {
                    deleted.push(*item);
                }
            }
        }
        match deleted.len() - 1 {
            0 => {}
            all if all == items.len() => ctx.replicate_verbatim(),
            1 => ctx.replicate(c"BF.DEL", &deleted),
            _ => ctx.replicate(c"BF.MDEL", &deleted),
        }
        Ok(deleted.len() as u64 - 1)
    })
}
