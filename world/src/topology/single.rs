//! One server.

use std::rc::Rc;

use super::arrangement::Arrangement;
use super::node::{self, Node};
use super::plant::Plant;
use crate::history::{Event, History};

/// One server.
pub(super) struct Single {
    nodes: Vec<Rc<Node>>,
    history: History,
}

impl Single {
    pub(super) fn start(plant: &Plant, history: &History) -> Self {
        Self { nodes: Node::start(0, plant, history).into_iter().collect(), history: history.clone() }
    }
}

impl Arrangement for Single {
    fn url(&self) -> String {
        format!("redis://{}:{}", node::host(0), node::PORT)
    }

    fn nodes(&self) -> &[Rc<Node>] {
        &self.nodes
    }

    fn node(&self, at: usize) -> Option<Rc<Node>> {
        self.nodes.get(at).cloned()
    }

    fn lose(&self, _node: &Node, how: &str) {
        self.history.note(Event::Lost { how: how.to_owned() });
    }
}
