//! A list that is nearly always of one.

/// A list whose first element needs no memory of its own. It is itself as small as can be, since it is moved about by the million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Few<T> {
    first: Option<T>,
    /// Never empty where it is there.
    #[expect(clippy::box_collection, reason = "a vector takes three words, and nearly always there is none")]
    more: Option<Box<Vec<T>>>,
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few { first: None, more: None }
    }
}

impl<T> Few<T> {
    pub fn one(value: T) -> Few<T> {
        Few { first: Some(value), more: None }
    }

    pub fn push(&mut self, value: T) {
        if self.first.is_none() {
            self.first = Some(value);
        } else {
            self.more.get_or_insert_default().push(value);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.first.iter().chain(self.more.iter().flat_map(|more| more.iter()))
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        if let Some(more) = &mut self.more {
            more.retain(&keep);
        }
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            let next = self.more.as_mut().filter(|more| !more.is_empty()).map(|more| more.remove(0));
            self.first = next;
        }
        if self.more.as_ref().is_some_and(|more| more.is_empty()) {
            self.more = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_whichever_element_goes() {
        let mut few = Few::one(1);
        few.push(2);
        few.push(3);
        few.retain(|&value| value != 1);
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [2, 3]);
        few.retain(|&value| value != 3);
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [2]);
        few.retain(|_| false);
        assert!(few.is_empty());
    }
}
