// Package words prints what other packages have found, in words and tables.
//
// Read first: [Explained]. A line begins with a label of nine columns, as [PrintClauses] writes it.
package words
