package depot

import (
	"context"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Save hands out what is kept for an account, by the names that the bucket has it under.
// What grows old meanwhile is left out.
func Save(ctx context.Context, b bus.Bus, site, account messages.Name, keep func(object string, data []byte) error) error {
	var bucket bus.Objects
	var objects []string
	err := repeated(ctx, func(ctx context.Context) (err error) {
		bucket, objects, err = b.Kept(ctx, bucketName(site, account))
		return err
	})
	if err != nil && messages.KindOf(err) == messages.NotFound {
		return nil // it never had files
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

// tries is how often something is asked for whose answer does not come: the answer is lost where
// another server begins to lead the stream.
const tries = 6

// repeated asks for something, again if there is no answer in time.
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

// Load takes in what was saved, from a directory with one for each account, and removes
// the directory. What is taken in is kept as if it had come now.
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
