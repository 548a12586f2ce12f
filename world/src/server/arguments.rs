//! The words of a command, in one buffer.

/// The words of a command, its name first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
}

impl Arguments {
    /// Returns a command of these words.
    pub(crate) fn of<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut arguments = Self::default();
        words.into_iter().for_each(|word| arguments.push(word.as_ref()));
        arguments
    }

    pub(crate) fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The number of words, that of the name included.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns a word, or `None` behind the last one.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(begin..end)
    }

    /// Returns a word, empty behind the last one.
    pub(crate) fn word(&self, index: usize) -> &[u8] {
        self.get(index).unwrap_or_default()
    }

    /// Returns a word as text.
    pub(crate) fn text(&self, index: usize) -> String {
        String::from_utf8_lossy(self.word(index)).into_owned()
    }

    /// Tells whether a word is that option, in any case.
    pub(crate) fn is(&self, index: usize, option: &str) -> bool {
        self.word(index).eq_ignore_ascii_case(option.as_bytes())
    }

    /// Returns the words from that one on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        (index..self.len()).map(|index| self.word(index))
    }

    /// Appends the command as a client sends it.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(format!("*{}\r\n", self.len()).as_bytes());
        for word in self.from(0) {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
    }
}
