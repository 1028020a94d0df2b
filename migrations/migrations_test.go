package migrations_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/migrations"
)

// Without the session lock the migrators collide on creating the tables.
func TestFourMigratorsAtOnceApplyOnce(t *testing.T) {
	url := testpg.Empty(t)
	counts, errs := make([]int, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range counts {
		wg.Go(func() {
			applied, err := migrations.Up(context.Background(), url)
			counts[i], errs[i] = len(applied), err
		})
	}
	wg.Wait()
	total := 0
	for i := range counts {
		total += counts[i]
		if errs[i] != nil {
			t.Errorf("migrator %d: %v", i, errs[i])
		}
	}
	all, err := migrations.Status(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	if total != len(all) {
		t.Errorf("%d migrations were applied %d times", len(all), total)
	}
}

func TestDownUndoesUp(t *testing.T) {
	ctx, url := context.Background(), testpg.Empty(t)
	up, err := migrations.Up(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	for range up {
		if _, err := migrations.Down(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Down(ctx, url); !errors.Is(err, migrations.ErrNothingToUndo) {
		t.Errorf("one Down too many: %v, want ErrNothingToUndo", err)
	}
	all, err := migrations.Status(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Applied {
			t.Errorf("%s is still applied", v.Name)
		}
	}
	again, err := migrations.Up(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(up) {
		t.Errorf("up after down applied %d, want %d", len(again), len(up))
	}
}
