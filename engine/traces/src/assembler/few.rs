//! A list that is nearly always of one.

/// A list whose first element needs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few { first: None, more: Vec::new() }
    }
}

impl<T> Few<T> {
    pub fn one(value: T) -> Few<T> {
        Few { first: Some(value), more: Vec::new() }
    }

    pub fn push(&mut self, value: T) {
        if self.first.is_none() {
            self.first = Some(value);
        } else {
            self.more.push(value);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.first.iter().chain(self.more.iter())
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.more.retain(&keep);
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            self.first = if self.more.is_empty() { None } else { Some(self.more.remove(0)) };
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
