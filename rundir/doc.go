// Package rundir keeps runs that are whole or not there.
//
// Read first: [Dir], a run that is being written. [Create] begins one, [Dir.Write] and
// [Dir.Append] make its files, and [Dir.Commit] makes them the run of the directory. [Open] and
// [Verify] read one, [Extend] adds to one, and [Resume] goes on from a checkpoint.
//
// # Protocol
//
// A run directory DIR holds the files of a run and manifest.json, which lists them with their
// hashes. It also holds .lock, which the writing process locks, and .staging, where a run is
// written.
//
//  1. Create empties .staging and writes a manifest of the beginning run there.
//  2. Files are written below .staging. Nothing in DIR changes.
//  3. Commit syncs all of them and the manifest, and then renames .staging to .commit. This
//     decides: before it the run of DIR is the earlier one, and after it the new one.
//  4. What the earlier run had and the new one has not is removed, every file moves from .commit
//     to its place, then the manifest does, and .commit goes.
//
// Whoever opens DIR and finds a manifest in .commit does step 4, with the lock.
//
// # Why a cut at any operation loses nothing
//
// Up to the rename of step 3 no operation touches the earlier run, so it is whole. The rename
// itself happens or does not. From then on this holds: every file that the manifest in .commit
// lists is either in .commit or at its place, with its contents. A removal does not touch a
// listed file, and a move takes one from the first state to the second. Both can be repeated: files
// that are gone are not removed again, and moved files are not moved again. The manifest leaves
// .commit after the last file, and directories are synced between the two, so that a .commit
// without a manifest means that everything is at its place. Adding files to a run is a commit in
// which only they and the manifest lie in .commit.
//
// A run that did not come to its end takes no complete one's place: it stays in .staging. One
// that did keeps its last checkpoint, so that it can go on further.
//
// # Files
//
// FILES.md in the folder of this package lists the files of a run, their columns and keys.
//
// # What is compared when a run is read
//
// A manifest holds its own hash, the seal. It is read in one place, where a manifest with another seal is
// refused. A finished run that goes on is compared with the hashes in its manifest, as far as it is carried
// over. The files of a training that goes on have no hashes there, since they grow: their lengths and
// hashes are noted in each checkpoint by its writer.
//
// # Units
//
// Lengths are in bytes, steps are counted from 1.
package rundir
