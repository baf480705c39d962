// Package models has the networks that ship with dahl, and their table, [All].
package models
