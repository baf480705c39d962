// Package layers has the layers that ship with dahl, each in a file of its own, and their table, [All].
//
// They stand on the methods of [nn.Node] alone, as layers of other modules do.
package layers
