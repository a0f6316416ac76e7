// Package status says what is to be written of policies and of what they are in force
// on. It is pure: what is there and what is wanted go in, what is to be there comes out,
// and where nothing changes the same comes out as went in, so that nothing is written.
package status
