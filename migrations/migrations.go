// Package migrations holds the ledger's schema and applies it.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Version is one migration and whether the database has it.
type Version struct {
	Number  int64
	Name    string
	Applied bool
}

// Up applies every migration that the database at url lacks and returns those
// it applied. Any number of callers may do so at once: a lock in the database
// lets them pass one by one.
func Up(ctx context.Context, url string) (applied []Version, err error) {
	err = with(url, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		for _, r := range results {
			applied = append(applied, version(r.Source, true))
		}
		return err
	})
	return applied, err
}

// Down undoes the newest migration, with the data in what it drops, and
// returns it. A database without migrations is left alone: the error is then
// ErrNothingToUndo.
func Down(ctx context.Context, url string) (undone Version, err error) {
	err = with(url, func(p *goose.Provider) error {
		r, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return ErrNothingToUndo
		}
		if err == nil {
			undone = version(r.Source, false)
		}
		return err
	})
	return undone, err
}

// ErrNothingToUndo means that no migration is applied.
var ErrNothingToUndo = errors.New("no migration is applied")

// Status lists all migrations, oldest first. It changes nothing that a ledger
// keeps, but creates goose's own table where there is none.
func Status(ctx context.Context, url string) (all []Version, err error) {
	err = with(url, func(p *goose.Provider) error {
		list, err := p.Status(ctx)
		for _, s := range list {
			all = append(all, version(s.Source, s.State == goose.StateApplied))
		}
		return err
	})
	return all, err
}

func version(s *goose.Source, applied bool) Version {
	return Version{Number: s.Version, Name: s.Path, Applied: applied}
}

// with calls do with a provider over its own connection to url.
func with(url string, do func(*goose.Provider) error) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	defer db.Close()
	// Trying once a second for five minutes: a migrator that waits for another
	// starts soon after it.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := do(p); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}
