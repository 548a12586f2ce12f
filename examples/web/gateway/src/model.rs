//! Stands for a language model: it says what it hears, and takes a while for each word. Each word is one token.

use std::iter;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::sleep;

pub(crate) fn count_tokens(text: &str) -> u64 {
    text.split_whitespace().map(|_| 1).sum()
}

/// Streams the answer to a prompt, token by token, and at most so many.
pub(crate) fn answer(prompt: &str, max_tokens: u32) -> impl Stream<Item = String> + use<> {
    let words: Vec<_> =
        iter::zip(prompt.split_whitespace(), 0..max_tokens).map(|(word, _)| format!("{word} ")).collect();
    stream::iter(words).then(async |word| {
        sleep(Duration::from_millis(20)).await;
        word
    })
}
