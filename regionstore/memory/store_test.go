package memory_test

import (
	"testing"

	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(_ testing.TB, c regionstore.Config) *storetest.Subject { return storetest.Memory(c) })
}
