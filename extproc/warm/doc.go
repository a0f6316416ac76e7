// Package warm loads URLs into the cache before they are asked for: those of a
// file before the process is ready, and those that the admin API is given.
//
// It reads the list, paces the fetches and keeps count; how one URL is loaded it
// is told ([Options]). The fetches are those of a refresh, so that what they
// bring is stored as a request would have stored it.
package warm
