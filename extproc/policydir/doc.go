// Package policydir reads CachePolicy files: it says of each fault in which file
// and line it stands, and watches a directory for changes.
//
// weir-extproc (--policy-dir) and weirctl validate read through the same
// function, LoadFiles, so that what one refuses the other refuses too.
package policydir
