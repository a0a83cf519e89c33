package identity

const (
	UserPayload = userPayload
)

var Made = create
