// Package popularity estimates how often each key is read, and keeps the names
// of the most read ones, in memory that does not grow with the number of keys.
//
// One [Sketch] serves all who ask what is hot: the queue of fetches, which lets
// the most popular key go first; the early-refresh draw, whose weight follows the
// rate of a key; the list of hot keys; and the warm-up of a replica that is new.
//
// The counts are a count-min sketch (Cormode, Muthukrishnan: An Improved Data
// Stream Summary: The Count-Min Sketch and its Applications, J. Algorithms 2005)
// with conservative update (Estan, Varghese: New Directions in Traffic
// Measurement and Accounting, SIGCOMM 2002). They decay exponentially. A count
// that is large already grows by sampling, after Morris (Counting Large Numbers
// of Events in Small Registers, CACM 1978): a hot key costs its readers a few
// loads of memory that nobody writes to, and the cores do not fight over it.
package popularity
