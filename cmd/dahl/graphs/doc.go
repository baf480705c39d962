// Package graphs has task graphs and machines as files: the reader of --graph, the writers of graph --export, and the command
// import.
//
// Read first: [Read], [ExportTo], [NewImport].
package graphs
