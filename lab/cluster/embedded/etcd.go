package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// socketName is etcd's client socket in the private folder.
const socketName = "etcd.sock"

func init() {
	// etcd preallocates its write-ahead log twice; 64 MB each is too much for a lab. It is a variable of the package,
	// read by every server of the process, so it is set once, before there is one.
	wal.SegmentSizeBytes = 4 << 20
}

// startEtcd runs an etcd of one member in this process, its data and socket in dir.
func startEtcd(ctx context.Context, dir string, log io.Writer) (*embed.Etcd, error) {
	e, err := tryEtcd(etcdConfig(dir, log))
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w; it needs 10 MB there: free some, or choose another folder with TMPDIR", dir, err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("it stopped")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("wait for etcd in %s: %w", dir, err)
}

// tryEtcd returns as errors what etcd panics with, a full disk for one.
func tryEtcd(config *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			e, err = nil, r
		default:
			e, err = nil, fmt.Errorf("it gave up: %v", r)
		}
	}()
	return embed.StartEtcd(config)
}

func etcdConfig(dir string, log io.Writer) *embed.Config {
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "etcd")
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(log))
	// The data is worth nothing after the process, so a write need not reach the disk.
	c.UnsafeNoFsync = true
	// The only member elects itself; these are milliseconds, and the start waits for one election.
	c.TickMs, c.ElectionMs = 10, 100
	c.PreVote = false
	c.SnapshotCount = 100_000
	c.QuotaBackendBytes = 8 << 30
	c.MaxRequestBytes = 4 << 20
	c.EnableGRPCGateway = false
	client := []url.URL{{Scheme: "unix", Path: filepath.Join(dir, socketName)}}
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	// No peers will come. etcd wants an address to advertise, but not to listen.
	c.ListenPeerUrls = []url.URL{}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

// etcdLogger writes etcd's warnings and errors to log, or nowhere. Where etcd would end the process on the spot, it panics
// instead: that can be caught while it starts, and says later what was the matter and where.
func etcdLogger(log io.Writer) *zap.Logger {
	hooks := []zap.Option{zap.WithFatalHook(panicWithReason{}), zap.WithPanicHook(panicWithReason{})}
	if log == nil {
		return zap.New(zapcore.NewNopCore(), hooks...)
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(log)), zap.WarnLevel), hooks...)
}

// panicWithReason panics with the error that the log line carries, too: with the line's text alone a full disk could not
// be told from a broken one.
type panicWithReason struct{}

// OnWrite is called when the line has been written.
func (panicWithReason) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			panic(fmt.Errorf("%s: %w", entry.Message, err))
		}
	}
	panic(errors.New(entry.Message))
}
