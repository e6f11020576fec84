//! Filters that can forget: counting filters, whose places are counters.
//!
//! A Bloom filter cannot delete an item, since its bits may be other items' too. A counting filter (Fan, Cao, Almeida and
//! Broder 1998) has counters in the place of bits: an add counts the item's places up, a delete counts them down, and the item
//! is found as long as none of them is 0. Four bits are enough: in a filter with its best number of items a counter comes to
//! 16 with a chance of 1.4e-15 (their table). What such a filter costs is four times the memory.
//!
//! *An item whose places coincide counts such a place once*, in an add and in a delete.
//!
//! *Counters that have come to 15 stay there.* What they stand for is not known any more, so counting one of them down could
//! bring it to 0 under an item that is in. So an item that was added fifteen times, hot items then, can never be deleted
//! wholly. That is a false positive at worst.
//!
//! # Which layer
//!
//! A chain grows, and a counter may only be counted down where it was counted up. Whether an item is in a layer a Bloom filter
//! does not know; deleting it from a layer that errs about it takes counts from other items, and these are missed later. The
//! rule here is that **add and delete act on the oldest layer in which the item is found, and an add for which there is none
//! on the newest**. It is safe for every item that is only deleted as often as it was added:
//!
//! 1. Which places of an older layer are not 0 changes in one direction: they become fewer. An add to it is of an item that is
//!    found there, so it counts up places that are not 0.
//! 2. So an item that is not found in an older layer when it comes is never found there later.
//! 3. In the layer to which its first add went, its own counts keep the item found until its last delete. (A layer that
//!    was the newest then may have become an older one; nothing of this changes.)
//! 4. By 2 and 3 the oldest layer in which it is found stays the same one from its first add to its last delete: all its
//!    counts are there, and each of its deletes takes its own. Whatever else a counter holds belongs to others.
//!
//! It follows that every add has to count, also one that is answered "was there": it may be a false positive, and its delete
//! will come. In a full filter too, so a layer may hold more items than it was made for; but the rate depends on which
//! places are 0, which such an add leaves as they are. Only an item that is found nowhere is refused by a full filter, or
//! makes it grow, and whether it is full is told by the items in the newest layer: adds less deletes. Since no item remains
//! uncounted, a layer is sized for as many distinct items as its capacity (plain ones for a few more: [`super::sizing`]).
//!
//! The rate therefore holds through any number of adds and deletes. Only an item that was found nowhere makes a place other than
//! 0, and when it came the newest layer held no more items than its capacity, itself included; whatever comes before the next
//! such item leaves these places as they are, or some of them at 0. (But for counters that stay at 15.)
//!
//! *Deleting an item that was never added* is answered 0 and changes nothing, as a rule. But if it is a false positive, it is
//! deleted, and takes counts that belong to others: some of these may be answered "not there" from then on. No counting
//! filter can tell. Delete only what was added, and as often.
//!
//! # References
//!
//! - L. Fan, P. Cao, J. Almeida, A. Z. Broder, Summary cache: a scalable wide-area web cache sharing protocol, IEEE/ACM
//!   Transactions on Networking 8 (2000).

use super::chain::{Added, Chain, Room, Stop, mask_of};
use super::geometry::FourBit;
use super::hash::Hash;
use super::layer::{GROUP, Group, Mask, items_of};

impl Chain {
    /// Takes one item once from a counting filter; whether it was there. A plain one has no such thing.
    #[inline]
    pub fn remove(&mut self, item: &[u8]) -> bool {
        let hash = self.hash(item);
        self.ask_for(hash);
        self.down(hash, 0)
    }

    /// Takes a group of at most [`GROUP`] items from a counting filter, in order; which of them were there.
    pub fn remove_group(&mut self, items: &[&[u8]]) -> Mask {
        let group = self.group(items);
        let from = self.oldest_with(&group, mask_of(items.len()));
        // A layer in which an item was not found before the group does not hold it at its turn: deletes only empty places.
        items_of(mask_of(items.len())).fold(0, |was, i| was | Mask::from(self.down(group.hash(i), from[i])) << i)
    }

    /// How often an item was added to a counting filter and not deleted, at most: 0 is certain, and 15 also stands for more.
    #[inline]
    pub fn times(&self, item: &[u8]) -> u8 {
        let hash = self.hash(item);
        self.ask_for(hash);
        self.layers().map(|layer| layer.times(hash)).find(|&times| times > 0).unwrap_or(0)
    }

    /// Adds one item; whether it was new.
    #[inline]
    pub(super) fn count_up(&mut self, item: &[u8], room: Room) -> Result<bool, Stop> {
        let hash = self.hash(item);
        self.ask_for(hash);
        self.up(hash, 0, room)
    }

    /// Adds a group, in order.
    pub(super) fn count_up_group(&mut self, items: &[&[u8]], room: Room) -> Added {
        let group = self.group(items);
        let from = self.oldest_with(&group, mask_of(items.len()));
        // The lines of those that are found are here; the others' in the newest layer are on their way before the first is added.
        if let Some(newest) = self.layers().next_back() {
            items_of(mask_of(items.len())).for_each(|i| newest.ask_for_lines(group.hash(i)));
        }
        let mut new = 0;
        for i in items_of(mask_of(items.len())) {
            // An older layer finds the same items at their turn as before the group; the newest may find more.
            match self.up(group.hash(i), from[i], room) {
                Ok(was_new) => new |= Mask::from(was_new) << i,
                Err(stop) => return Added { done: i, new, stop: Some(stop) },
            }
        }
        Added { done: items.len(), new, stop: None }
    }

    /// Has the item's lines come before the first layer is looked into: of the newest, which is the largest and takes what is
    /// new, all of them, of the others the first.
    fn ask_for(&self, hash: Hash) {
        let mut layers = self.layers().rev();
        if let Some(newest) = layers.next() {
            newest.ask_for_lines(hash);
        }
        layers.for_each(|layer| _ = layer.first_line(hash));
    }

    /// The oldest layer in which each of the `wanted` items is found, or the newest: where a search for it begins. Their lines
    /// are in the cache then.
    fn oldest_with(&self, group: &Group, mut wanted: Mask) -> [usize; GROUP] {
        let mut oldest = [self.layer_count() - 1; GROUP];
        for (number, layer) in self.layers().enumerate() {
            let found = layer.probe::<FourBit>(group, &layer.first_lines(group, wanted), wanted);
            items_of(found).for_each(|i| oldest[i] = number);
            wanted &= !found;
            if wanted == 0 {
                break;
            }
        }
        oldest
    }

    /// Counts an item up that no layer before `from` holds; whether it was new.
    fn up(&mut self, hash: Hash, from: usize, room: Room) -> Result<bool, Stop> {
        let layers = self.layer_count();
        let new = !(from..layers).any(|number| self.layer_mut(number).up_if_there(hash));
        if new {
            let newest = self.layer_mut(layers - 1);
            if newest.is_full() && room == Room::Kept {
                return Err(Stop::Full);
            }
            newest.up(hash).map_err(|_| Stop::OutOfMemory)?;
        }
        self.count_change();
        Ok(new)
    }

    /// Counts an item down that no layer before `from` holds; whether it was there.
    fn down(&mut self, hash: Hash, from: usize) -> bool {
        let was = (from..self.layer_count()).any(|number| self.layer_mut(number).down_if_there(hash));
        if was {
            self.count_change();
        }
        was
    }
}
