"""The OpenAPI description of what FastAPI cannot derive: bodies, answers, errors, the token."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from newfound.prediction import prediction_columns
from newfound.serving.bodies import MOST_TEXTS
from newfound.serving.service import NOT_ANSWERED

Schema = dict[str, Any]

TYPES = {str: "string", float: "number", int: "integer", bool: "boolean"}
SCHEMAS = ("Texts", "Predictions", "Categories", "Health", "Loaded", "Error")
ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    408: "The body did not arrive in time.",
    409: "The new run cannot be used; the old one stays.",
    413: "The body or a text is too large, or there are more texts than may wait.",
    415: "The body is of another type than JSON.",
    422: "The body is JSON of another form.",
    500: "The prediction failed.",
    503: "Too many texts are waiting; Retry-After has the seconds after which to try again.",
}


def answers(schema: str, what: str, *errors: int) -> dict[str, Any]:
    """Return the arguments of a route that describe its answers."""
    described: dict[int | str, Schema] = {
        200: {"description": what, "content": _json(schema)},
    }
    for status in errors:
        described[status] = {"description": ERRORS[status], "content": _json("Error")}
        if status == 503:
            described[status]["headers"] = {
                "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}
            }
    return {"responses": described}


def body_of_texts() -> Schema:
    """Return the description of the body of /predict."""
    examples = {
        "one text": {"value": {"text": "my parcel never came"}},
        "several texts": {"value": {"texts": ["my parcel never came", "cancel my order"]}},
    }
    content = {"application/json": {"schema": _reference("Texts"), "examples": examples}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, *, token: bool) -> Schema:
    """Return the OpenAPI description of the app; with `token`, of one that requires a token."""
    found = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    parts = found.setdefault("components", {})
    parts["schemas"] = _schemas()
    if token:
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in found["paths"].items():
            for operation in operations.values():
                if path != "/health":
                    operation["security"] = [{"token": []}]
                    error = {"description": ERRORS[401], "content": _json("Error")}
                    operation["responses"]["401"] = error
    return found


def _schemas() -> dict[str, Schema]:
    """Return the schemas of bodies and answers."""
    columns = {k: v for k, v in prediction_columns().items() if k not in NOT_ANSWERED}
    prediction = {name: {"type": [TYPES[kind], "null"]} for name, kind in columns.items()}
    text: Schema = {"type": "string"}
    model: Schema = {"type": "string", "description": "sha256 of the model that answered"}
    category = _object({"name": text, "kind": {"enum": ["known", "novel"]}}, more=True)
    return {
        "Texts": {
            "oneOf": [
                _object({"text": text}),
                _object(
                    {
                        "texts": {
                            "type": "array",
                            "items": text,
                            "minItems": 1,
                            "maxItems": MOST_TEXTS,
                        }
                    }
                ),
            ]
        },
        "Predictions": _object(
            {
                "model": model,
                "predictions": {
                    "type": "array",
                    "items": _object(prediction),
                    "description": "one per text, in the order of the texts; all null for an "
                    "empty text",
                },
            }
        ),
        "Categories": _object({"model": model, "categories": {"type": "array", "items": category}}),
        "Health": _object(
            {
                "status": {"enum": ["ok"]},
                "model": model,
                "precision": {"enum": ["fp32", "int8"]},
                "waiting": {"type": "integer", "description": "texts in the queue"},
                "last_reload": {"enum": ["none", "done", "failed"]},
            }
        ),
        "Loaded": _object({"model": model, "notes": {"type": "array", "items": text}}),
        "Error": _object({"error": {"type": "string", "description": "one sentence"}}),
    }


def _object(properties: dict[str, Schema], *, more: bool = False) -> Schema:
    """Return the schema of an object that has all these properties, and no others unless `more`."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": more,
    }


def _json(schema: str) -> Schema:
    return {"application/json": {"schema": _reference(schema)}}


def _reference(schema: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema}"}
