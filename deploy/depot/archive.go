package depot

import (
	"context"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Save calls the function `keep` for each object of an account's bucket, with its name and content. It leaves out
// objects that expire in the meantime.
func Save(ctx context.Context, b bus.Bus, site, account messages.Name, keep func(object string, data []byte) error) error {
	var bucket bus.Objects
	var objects []string
	err := repeated(ctx, func(ctx context.Context) (err error) {
		bucket, objects, err = b.Kept(ctx, bucketName(site, account))
		return err
	})
	if err != nil && messages.KindOf(err) == messages.NotFound {
		return nil // the account has never had files
	}
	if err != nil {
		return err
	}
	for _, object := range objects {
		var data []byte
		err := repeated(ctx, func(ctx context.Context) (err error) {
			data, _, err = bucket.Get(ctx, object)
			return err
		})
		if err != nil && messages.KindOf(err) == messages.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := keep(object, data); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often a request without an answer is sent. Answers are lost when the leader of the stream changes.
const tries = 6

// repeated calls the function ask until it gets an answer, but at most six times. Each attempt ends after
// bus.RequestTimeout.
func repeated(ctx context.Context, ask func(context.Context) error) (err error) {
	for range tries {
		bounded, cancel := context.WithTimeout(ctx, bus.RequestTimeout)
		err = ask(bounded)
		cancel()
		if err == nil || messages.KindOf(err) != messages.Unavailable || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Load stores the files that Save wrote into dir, which has one directory for each account. Then it removes dir. The
// files are kept as long as new files.
func Load(ctx context.Context, c Config, dir string) error {
	if err := c.Validate(); err != nil {
		return err
	}
	accounts, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, account := range accounts {
		if err := load(ctx, &c, account.Name(), filepath.Join(dir, account.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

func load(ctx context.Context, c *Config, account messages.Name, dir string) error {
	objects, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	bucket, err := c.Bus.Objects(ctx, bucketName(c.Site, account), bus.BucketConfig{MaxAge: c.Retention, MaxBytes: c.Quota})
	if err != nil {
		return err
	}
	for _, object := range objects {
		data, err := os.ReadFile(filepath.Join(dir, object.Name()))
		if err != nil {
			return err
		}
		if err := bucket.Put(ctx, object.Name(), data); err != nil {
			return err
		}
	}
	return nil
}
