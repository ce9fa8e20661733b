//! Documents that are put together one value at a time: JSON_ARRAYAGG and JSON_OBJECTAGG.

use crate::tree::Json;

/// An array in the making.
#[derive(Debug, Clone, Default)]
pub struct ArrayBuilder {
    elements: Vec<Json>,
}

impl ArrayBuilder {
    /// Adds an element.
    pub fn push(&mut self, value: Json) {
        self.elements.push(value);
    }

    /// The array.
    pub fn finish(self) -> Json {
        Json::Array(self.elements)
    }
}

/// An object in the making.
#[derive(Debug, Clone, Default)]
pub struct ObjectBuilder {
    members: Vec<(String, Json)>,
}

impl ObjectBuilder {
    /// Adds a member; of several with one name the last one stays.
    pub fn push(&mut self, name: String, value: Json) {
        self.members.push((name, value));
    }

    /// The object.
    pub fn finish(self) -> Json {
        Json::object(self.members)
    }
}
