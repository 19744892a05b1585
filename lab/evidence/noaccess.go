package evidence

import (
	"errors"

	"github.com/crdlab/crdlab/lab/storage"
)

// NoAccess is why the stored values cannot be read, an ErrNoAccess of package storage; nil where they can, as far as is
// known. That values are encrypted is seen with the first of them.
func (o *Observer) NoAccess() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.blind
}

// lost says whether an error means that the stored values cannot be read, and notes it: from then on the observer does
// without them.
func (o *Observer) lost(err error) bool {
	if !errors.Is(err, storage.ErrNoAccess) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blind, o.trouble = err, nil
	o.signal()
	return true
}
